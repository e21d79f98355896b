package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// cluster is an API server in memory, with the workers of an operator, in virtual time. Its
// watches show every write at once.
type cluster struct {
	t       *testing.T
	engine  *Engine
	streams map[string]*watch.Stream
	// latency is the duration of a write.
	latency time.Duration

	mu      sync.Mutex
	objects map[string]map[string]any // by resource and name
	version int
	writes  []string // the names of the written objects
	stop    context.CancelFunc
	stopped chan struct{}
}

// inCluster runs a test with the handlers of the plurals, in virtual time.
func inCluster(t *testing.T, declare func(r *registry.Registry), test func(t *testing.T, c *cluster), more ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{
			t: t, objects: map[string]map[string]any{}, latency: time.Millisecond,
			streams: map[string]*watch.Stream{},
		}
		handlers := handlersOf(t, declare)
		config := Config{
			Handlers: handlers, Logger: logr.Discard(), Context: withCall,
			REST: &rest.Config{Host: "http://nowhere", QPS: -1}, HTTP: &http.Client{Transport: c},
		}
		for _, change := range more {
			change(&config)
		}
		c.engine = New(config)
		for _, d := range handlers {
			c.serve(d.Selector, handlers)
		}
		c.start()
		test(t, c)
		c.shutDown()
		if got := c.engine.slots.Usage(); got != (call.Usage{}) || c.engine.permits.Waiting() != 0 {
			t.Errorf("%+v is left, and %d passes wait", got, c.engine.permits.Waiting())
		}
	})
}

// serve adds the resource of a selector.
func (c *cluster) serve(of selector.Selector, handlers registry.Handlers) {
	plural := fmt.Sprint(of)
	found := discovery.SelectedResource{
		Resource:  selector.Resource{Group: "kopf.dev", Version: "v1", Plural: plural, Kind: plural, Namespaced: true},
		Selectors: []selector.Selector{of},
	}
	if c.engine.resources.get(found.String()) != nil {
		return
	}
	client, err := kube.New(c.engine.REST, c.engine.HTTP, found.Resource, c.engine.Settings)
	if err != nil {
		c.t.Fatal(err)
	}
	r := newResource(watch.NewResource(found, client), handlers.Where(func(d *handler.Declaration) bool { return d.Selector == of }))
	c.engine.resources.put(r)
	c.streams[plural] = watch.NewStream(context.Background(), r.Resource, "", consumer{c.engine})
	r.Add(c.streams[plural])
}

// start lets the engine work until shutDown.
func (c *cluster) start() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.stopped = stop, make(chan struct{})
	go func() {
		defer close(c.stopped)
		for ctx.Err() == nil {
			active, end, _ := c.engine.pause.wait(ctx)
			if active == nil {
				return
			}
			if err := c.engine.workUntilPause(ctx, active, false); err != nil {
				c.t.Error(err)
			}
			end()
		}
	}()
	synctest.Wait()
}

// shutDown stops the workers, and returns how long that took.
func (c *cluster) shutDown() time.Duration {
	began := time.Now()
	c.stop()
	<-c.stopped
	return time.Since(began)
}

// create creates an object of a resource.
func (c *cluster) create(plural, name string) {
	c.t.Helper()
	c.put(plural, map[string]any{"metadata": map[string]any{"name": name, "namespace": "ns", "uid": plural + name}, "spec": map[string]any{}})
}

// change changes the spec of an object.
func (c *cluster) change(plural, name string, spec map[string]any) {
	c.mu.Lock()
	raw := patch.ApplyMerge(c.objects[plural+"/"+name], map[string]any{"spec": spec})
	c.mu.Unlock()
	c.put(plural, raw)
}

// put stores a version of an object, and shows it to the operator.
func (c *cluster) put(plural string, raw map[string]any) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	raw = patch.ApplyMerge(raw, map[string]any{"metadata": map[string]any{"resourceVersion": fmt.Sprint(c.version)}})
	id := plural + "/" + fmt.Sprint(raw["metadata"].(map[string]any)["name"])
	c.objects[id] = raw
	text, err := json.Marshal(raw)
	if err != nil {
		panic(err)
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		panic(err)
	}
	if err := c.streams[plural].Update(snapshot); err != nil {
		panic(err)
	}
	return text
}

func (c *cluster) key(plural, name string) object.Key {
	return object.Key{Resource: plural + ".v1.kopf.dev", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// RoundTrip answers the requests of the operator.
func (c *cluster) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-time.After(c.latency):
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	parts := strings.Split(strings.TrimPrefix(request.URL.Path, "/apis/kopf.dev/v1/namespaces/ns/"), "/")
	c.mu.Lock()
	raw := c.objects[parts[0]+"/"+parts[1]]
	c.mu.Unlock()
	text, code := []byte(`{"kind":"Status","code":409,"reason":"Conflict"}`), http.StatusConflict
	var merge map[string]any
	if request.Method == http.MethodPatch {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(body, &merge); err != nil {
			return nil, err
		}
	}
	switch wanted, _ := object.Lookup(merge, object.Path{"metadata", "resourceVersion"}); {
	case request.Method == http.MethodGet:
		text, code = mustJSON(raw), http.StatusOK
	case wanted == raw["metadata"].(map[string]any)["resourceVersion"]:
		text, code = c.put(parts[0], patch.ApplyMerge(raw, merge)), http.StatusOK
		c.mu.Lock()
		c.writes = append(c.writes, parts[1])
		c.mu.Unlock()
	}
	return &http.Response{
		StatusCode: code, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// handled reports whether the base of the object is stored: its cycle has ended.
func (c *cluster) handled(plural, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	metadata := c.objects[plural+"/"+name]["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, ended := annotations["kopf.zalando.org/last-handled-configuration"]
	return ended
}
