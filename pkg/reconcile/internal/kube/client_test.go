package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// server gives the same response to every request, and keeps the requests.
type server struct {
	status      int
	contentType string
	response    string

	mu       sync.Mutex
	requests []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.Path
	if r.URL.RawQuery != "" {
		line += "?" + formatQuery(r.URL.Query())
	}
	if len(body) > 0 {
		line += " " + r.Header.Get("Content-Type") + " " + string(body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, line)
	s.mu.Unlock()
	w.Header().Set("Content-Type", s.contentType)
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.response)
}

// formatQuery returns a query in a readable form.
func formatQuery(query url.Values) string {
	var parts []string
	for key, values := range query {
		parts = append(parts, key+"="+strings.Join(values, ","))
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// serve starts a server, and returns a client of one of its resources.
func serve(t *testing.T, s *server, resource selector.Resource) *Client {
	t.Helper()
	if s.status == 0 {
		s.status = http.StatusOK
	}
	if s.contentType == "" {
		s.contentType = "application/json"
	}
	running := httptest.NewServer(s)
	t.Cleanup(running.Close)
	client, err := New(&rest.Config{Host: running.URL, QPS: -1}, running.Client(), resource, settings.Default())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestRequests(t *testing.T) {
	one := types.NamespacedName{Namespace: "ns", Name: "one"}
	nodes := selector.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}
	tests := map[string]struct {
		resource selector.Resource
		request  func(ctx context.Context, c *Client) error
		want     string
	}{
		"get": {kex, func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, one)
			return err
		}, "GET /apis/kopf.dev/v1/namespaces/ns/kopfexamples/one"},
		"get of the core group": {pods, func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, one)
			return err
		}, "GET /api/v1/namespaces/ns/pods/one"},
		"get without a namespace": {nodes, func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, types.NamespacedName{Name: "one"})
			return err
		}, "GET /api/v1/nodes/one"},
		"patch": {kex, func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, one, "", []byte(`{"spec":{}}`))
			return err
		}, `PATCH /apis/kopf.dev/v1/namespaces/ns/kopfexamples/one?fieldManager=kopf&fieldValidation=Ignore application/merge-patch+json {"spec":{}}`},
		"dry run": {kex, func(ctx context.Context, c *Client) error {
			return c.DryRun(ctx, one, "", []byte(`{"spec":{}}`))
		}, `PATCH /apis/kopf.dev/v1/namespaces/ns/kopfexamples/one?dryRun=All&fieldManager=kopf&fieldValidation=Ignore application/merge-patch+json {"spec":{}}`},
		"patch of status": {kex, func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, one, "status", []byte(`{"status":{}}`))
			return err
		}, `PATCH /apis/kopf.dev/v1/namespaces/ns/kopfexamples/one/status?fieldManager=kopf&fieldValidation=Ignore application/merge-patch+json {"status":{}}`},
		"list of all namespaces": {kex, func(ctx context.Context, c *Client) error {
			_, err := list(ctx, c, "", metav1.ListOptions{})
			return err
		}, "GET /apis/kopf.dev/v1/kopfexamples"},
		"list of a namespace": {kex, func(ctx context.Context, c *Client) error {
			_, err := list(ctx, c, "ns", metav1.ListOptions{})
			return err
		}, "GET /apis/kopf.dev/v1/namespaces/ns/kopfexamples"},
		"list of any version, which becomes consistent": {kex, func(ctx context.Context, c *Client) error {
			_, err := list(ctx, c, "", metav1.ListOptions{ResourceVersion: "0", Limit: 500})
			return err
		}, "GET /apis/kopf.dev/v1/kopfexamples?limit=500"},
		"list not older than a version, which becomes consistent": {kex, func(ctx context.Context, c *Client) error {
			_, err := list(ctx, c, "", metav1.ListOptions{ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			return err
		}, "GET /apis/kopf.dev/v1/kopfexamples"},
		"list of the next page": {kex, func(ctx context.Context, c *Client) error {
			_, err := list(ctx, c, "ns", metav1.ListOptions{Limit: 500, Continue: "token"})
			return err
		}, "GET /apis/kopf.dev/v1/namespaces/ns/kopfexamples?continue=token&limit=500"},
		"watch": {kex, func(ctx context.Context, c *Client) error {
			w, err := c.Source("ns", nil, settings.Default().Watching, func(error) {}).ListWatch().WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true})
			if err == nil {
				w.Stop()
			}
			return err
		}, "GET /apis/kopf.dev/v1/namespaces/ns/kopfexamples?allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=N&watch=true"},
	}
	random := regexp.MustCompile(`timeoutSeconds=\d+`)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{response: `{"metadata":{"name":"one"},"items":[]}`}
			if err := test.request(t.Context(), serve(t, s, test.resource)); err != nil {
				t.Fatal(err)
			}
			if got := random.ReplaceAllString(strings.Join(s.requests, "\n"), "timeoutSeconds=N"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func list(ctx context.Context, c *Client, namespace string, options metav1.ListOptions) (*List, error) {
	found, err := c.Source(namespace, nil, settings.Default().Watching, func(error) {}).ListWatch().ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	return found.(*List), nil
}

func TestResponsesAreSnapshots(t *testing.T) {
	s := &server{response: `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"one","resourceVersion":"8","managedFields":[{}]}}` + "\n"}
	client := serve(t, s, kex)
	got, err := client.Get(t.Context(), types.NamespacedName{Name: "one"})
	if err != nil || got.GetName() != "one" || got.GetResourceVersion() != "8" {
		t.Errorf("got %+v, %v", got, err)
	}
	patched, err := client.Patch(t.Context(), types.NamespacedName{Name: "one"}, "", []byte(`{}`))
	if err != nil || patched.Size() != got.Size() {
		t.Errorf("got %+v, %v", patched, err)
	}
}

func TestPagesHaveAContinueToken(t *testing.T) {
	s := &server{response: `{"metadata":{"resourceVersion":"7","continue":"token","remainingItemCount":5},"items":[{"metadata":{"name":"a"}}]}`}
	got, err := list(t.Context(), serve(t, s, kex), "", metav1.ListOptions{Limit: 1})
	if err != nil || got.GetResourceVersion() != "7" || got.GetContinue() != "token" || len(got.Items) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWatchedObjectsAreSnapshots(t *testing.T) {
	s := &server{response: strings.Join([]string{
		event("ADDED", "a", 0), event("BOOKMARK", "", 0),
		`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`,
	}, "\n") + "\n"}
	w, err := serve(t, s, kex).Source("", nil, settings.Default().Watching, func(error) {}).ListWatch().WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for event := range w.ResultChan() {
		switch seen := event.Object.(type) {
		case *object.Snapshot:
			got = append(got, fmt.Sprintf("%s %q %s", event.Type, seen.GetName(), seen.GetResourceVersion()))
		case *metav1.Status:
			got = append(got, fmt.Sprintf("%s %v", event.Type, apierrors.IsResourceExpired(apierrors.FromObject(seen))))
		}
	}
	if want := []string{`ADDED "a" 7`, `BOOKMARK "" 7`, string(watch.Error) + " true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
	}
	const page = "<html><body>no such page</body></html>"
	tests := map[string]struct {
		server *server
		is     func(error) bool
		want   string
	}{
		"not found": {
			&server{status: 404, response: status(404, metav1.StatusReasonNotFound, `kopfexamples.kopf.dev "one" not found`)},
			apierrors.IsNotFound, `kopfexamples.kopf.dev "one" not found`,
		},
		"a conflict": {
			&server{status: 409, response: status(409, metav1.StatusReasonConflict, "the object has been modified")},
			apierrors.IsConflict, "the object has been modified",
		},
		"invalid content": {
			&server{status: 422, response: status(422, metav1.StatusReasonInvalid, "spec.size: Invalid value")},
			apierrors.IsInvalid, "spec.size: Invalid value",
		},
		"a bad request": {
			&server{status: 400, response: status(400, metav1.StatusReasonBadRequest, "unknown field")}, apierrors.IsBadRequest, "unknown field",
		},
		"forbidden": {&server{status: 403, response: status(403, metav1.StatusReasonForbidden, "not permitted")}, apierrors.IsForbidden, "not permitted"},
		"too large": {
			&server{status: 413, response: status(413, metav1.StatusReasonRequestEntityTooLarge, "too large")}, apierrors.IsRequestEntityTooLargeError, "too large",
		},
		"not found by a proxy":  {&server{status: 404, contentType: "text/html", response: page}, apierrors.IsNotFound, "could not find the requested resource"},
		"a conflict of a proxy": {&server{status: 409, contentType: "text/html", response: page}, apierrors.IsConflict, "conflict"},
		"invalid for a proxy":   {&server{status: 422, contentType: "text/html", response: page}, apierrors.IsInvalid, ""},
		"not authorized":        {&server{status: 401, contentType: "text/plain", response: "who are you"}, apierrors.IsUnauthorized, "provide credentials"},
		"a truncated response":  {&server{response: `{"metadata":{"name":"one"`}, nil, "expected a JSON object"},
		"a page":                {&server{contentType: "text/html", response: page}, nil, ""},
		"an empty list":         {&server{response: `[]`}, nil, "expected a JSON object"},
		"an empty response":     {&server{}, nil, "expected a JSON object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, test.server, kex)
			key := types.NamespacedName{Namespace: "ns", Name: "one"}
			_, getErr := client.Get(t.Context(), key)
			_, patchErr := client.Patch(t.Context(), key, "", []byte(`{}`))
			for request, err := range map[string]error{"get": getErr, "patch": patchErr} {
				switch {
				case err == nil || !strings.Contains(err.Error(), test.want):
					t.Errorf("%s: got %v, want %q in it", request, err, test.want)
				case test.is != nil && !test.is(err):
					t.Errorf("%s: got another kind of error: %v", request, err)
				}
			}
		})
	}
}

func TestTruncatedListIsAnError(t *testing.T) {
	s := &server{response: `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},`}
	if got, err := list(t.Context(), serve(t, s, kex), "", metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "the list of kopfexamples.v1.kopf.dev is truncated or not JSON") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestInvalidHostIsAnError(t *testing.T) {
	if client, err := New(&rest.Config{Host: "http://[broken"}, http.DefaultClient, kex, settings.Default()); err == nil || !strings.Contains(err.Error(), "the API of kopfexamples.v1.kopf.dev cannot be used") {
		t.Errorf("got %v, %v", client, err)
	}
}
