package testenv

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Methods of requests that are GET in HTTP, but have other names in Kubernetes.
const (
	MethodList  = "LIST"
	MethodWatch = "WATCH"
)

// Request is a request of a client to the API server.
type Request struct {
	// Method is the HTTP method, except for LIST and WATCH.
	Method string
	// Group, Resource, Subresource, Namespace, and Name identify the target. All are
	// empty for discovery and other requests without a resource.
	Group, Resource, Subresource, Namespace, Name string
	// URI is the path with the query.
	URI string
	// Body is the body of the request; nil if there is none.
	Body []byte
	// Status is the status code of the response; 0 if there is none.
	Status int
}

// String returns the request on one line, for the message of a failed test.
func (r Request) String() string {
	answer := fmt.Sprint(r.Status)
	if r.Status == 0 {
		answer = "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URI, answer, r.Body))
}

// newRequest describes a request before it is sent.
func newRequest(sent *http.Request) Request {
	request := Request{Method: sent.Method, URI: sent.URL.RequestURI(), Body: body(sent)}
	request.locate(sent.URL.Path)
	if sent.Method == http.MethodGet && request.Resource != "" {
		switch {
		case sent.URL.Query().Get("watch") == "true":
			request.Method = MethodWatch
		case request.Name == "":
			request.Method = MethodList
		}
	}
	return request
}

// body reads a copy of the body. The clients of Kubernetes always offer a copy.
func body(sent *http.Request) []byte {
	if sent.GetBody == nil {
		return nil
	}
	reader, err := sent.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = reader.Close() }()
	content, _ := io.ReadAll(reader)
	return content
}

// locate splits the path: /api/v1/… or /apis/<group>/<version>/…, then
// namespaces/<namespace>/ for namespaced objects, then resource, name, subresource.
func (r *Request) locate(path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		r.Group, parts = parts[1], parts[3:]
	default:
		return
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	fields := [3]string{}
	copy(fields[:], parts)
	r.Resource, r.Name, r.Subresource = fields[0], fields[1], fields[2]
}
