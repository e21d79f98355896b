package inspect

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

type recorded struct{ requests []string }

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	r.requests = append(r.requests, request.Method+" "+request.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}

func TestReadOnlyRefusesEverythingButReads(t *testing.T) {
	for request, allowed := range map[string]bool{
		"GET /api/v1/pods":                                              true,
		"POST /api/v1/namespaces/default/pods":                          false,
		"PATCH /apis/kopf.dev/v1/kopfexamples/a":                        false,
		"PUT /apis/kopf.dev/v1/kopfexamples/a":                          false,
		"DELETE /apis/kopf.dev/v1/kopfexamples/a":                       false,
		"POST /apis/example.com/v1/selfsubjectors":                      false,
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":   true,
		"POST /apis/authentication.k8s.io/v1/selfsubjectreviews":        true,
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":       false,
		"DELETE /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": false,
	} {
		t.Run(request, func(t *testing.T) {
			next := &recorded{}
			config := ReadOnly(&rest.Config{Host: "http://example.com", Transport: next})
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			method, path, _ := strings.Cut(request, " ")
			made, err := http.NewRequestWithContext(t.Context(), method, "http://example.com"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Do(made)
			if err == nil {
				_ = answer.Body.Close()
			}
			if (err == nil) != allowed || (len(next.requests) == 1) != allowed {
				t.Errorf("got %v, %q", err, next.requests)
			}
		})
	}
}
