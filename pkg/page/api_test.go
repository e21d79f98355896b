package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// api is an API server that answers gets, lists, and watches, and fails for everything else.
type api struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]string // by paths
	offers  map[string]string // other answers about its resources, by paths
	others  []string          // the requests that write
	watches int               // the open ones
	events  chan string       // those of the objects of kopf.dev
}

// newAPI starts an API server with objects, by their paths.
func newAPI(t testing.TB, objects map[string]string) *api {
	t.Helper()
	a := &api{objects: objects, events: make(chan string)}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// discovered is what the API server says of its resources.
var discovered = map[string]string{
	"/api":              `{"kind":"APIVersions","versions":["v1"]}`,
	"/apis":             `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"kopf.dev","versions":[{"groupVersion":"kopf.dev/v1","version":"v1"}],"preferredVersion":{"groupVersion":"kopf.dev/v1","version":"v1"}}]}`,
	"/api/v1":           `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get","list","watch","patch"]}]}`,
	"/apis/kopf.dev/v1": `{"kind":"APIResourceList","groupVersion":"kopf.dev/v1","resources":[{"name":"kopfexamples","singularName":"kopfexample","namespaced":true,"kind":"KopfExample","verbs":["get","list","watch","patch"]}]}`,
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Method != http.MethodGet:
		a.others = append(a.others, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusInternalServerError)
	case a.hasOffer(r.URL.Path):
		if a.offers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, a.offers[r.URL.Path])
	case discovered[r.URL.Path] != "":
		_, _ = io.WriteString(w, discovered[r.URL.Path])
	case r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"lists come in pages"}`)
	case r.URL.Query().Has("watch"):
		a.watches++
		events := a.events
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			events = nil
		}
		a.mu.Unlock()
		_ = http.NewResponseController(w).Flush()
		for isOpen := true; isOpen; {
			select {
			case event := <-events:
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				isOpen = false
			}
		}
		a.mu.Lock()
		a.watches--
	case a.objects[r.URL.Path] != "":
		if strings.Contains(a.objects[r.URL.Path], `"code":403`) {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, a.objects[r.URL.Path])
	case strings.HasSuffix(r.URL.Path, "/kopfexamples"), strings.HasSuffix(r.URL.Path, "/secrets"):
		var items []json.RawMessage
		for path, object := range a.objects {
			if strings.Contains(path, r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]+"/") {
				items = append(items, json.RawMessage(object))
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "9"}, "items": items})
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
	}
}

// hasOffer is called with the lock.
func (a *api) hasOffer(path string) bool {
	_, has := a.offers[path]
	return has
}

// discover changes what the API server says of its resources. An empty answer is an error.
func (a *api) discover(path, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.offers == nil {
		a.offers = map[string]string{}
	}
	a.offers[path] = answer
}

// written returns the requests that write.
func (a *api) written() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.others
}

// openWatches returns the number of watches.
func (a *api) openWatches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watches
}

const token = "t0k3n"

// newPage returns a page about the objects of an API server.
func newPage(t testing.TB, of *api, adjust func(*Options)) *Page {
	t.Helper()
	r := &registry.Registry{}
	called := handlertest.Function(func(context.Context, *handler.Call) error {
		t.Error("a handler is called")
		return nil
	})
	for _, resource := range []string{"kopfexamples", "secrets"} {
		r.Add(handler.Create(selector.New(resource), called, handler.ID("create")))
		r.Add(handler.Update(selector.New(resource), called, handler.ID("update")))
	}
	handlers, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := inspect.Connect(t.Context(), &rest.Config{Host: of.URL}, inspect.Program{Handlers: handlers, Settings: settings.Default()})
	if err != nil {
		t.Fatal(err)
	}
	cluster.CommandLine = inspect.CommandLine{Pattern: "./my-operator COMMAND"}
	options := Options{Cluster: cluster, Token: token, LeaseNamespace: "default"}
	if adjust != nil {
		adjust(&options)
	}
	p := New(options)
	t.Cleanup(p.Close)
	return p
}

// example is the object "one" of the handled resource, with annotations and a specification.
func example(annotations, spec string) (path, object string) {
	return "/apis/kopf.dev/v1/namespaces/default/kopfexamples/one", fmt.Sprintf(
		`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"one","namespace":"default","uid":"u-1","resourceVersion":"5","creationTimestamp":"2026-01-01T00:00:00Z","annotations":{%s}},"spec":%s}`,
		annotations, spec)
}

// ask sends a request of a browser to a page. The edit can change it.
func ask(p *Page, method, path string, edit func(*http.Request)) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "http://127.0.0.1:8000"+path, http.NoBody)
	request.AddCookie(&http.Cookie{Name: "kopf-page-8000", Value: token})
	if edit != nil {
		edit(request)
	}
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, request)
	return answer
}
