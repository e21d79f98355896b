package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/storage"
)

// lone is an operator with one object on an API server in memory. The test decides what the
// watch shows, and when a pass is made.
type lone struct {
	*workers
	*witness
	t      *testing.T
	server *oneObject
	cache  *watch.Stream
	writes int
	stop   chan struct{}
	// next and err are the results of begin.
	next nextPass
	err  error
}

// marked is the content of an object that is being deleted.
var marked = m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z", "finalizers": []any{"kopf.zalando.org/KopfFinalizerMarker"}}}

// witness records the logs and events of the operator.
type witness struct{ log, events []string }

func (w *witness) Post(about corev1.ObjectReference, eventType, reason, message string) {
	w.events = append(w.events, fmt.Sprintf("%s/%s %s %s: %s", about.Kind, about.Name, eventType, reason, message))
}

// newLone returns an operator for a new object with the content.
func newLone(t *testing.T, content m, declare func(r *registry.Registry), more ...func(*Config)) *lone {
	t.Helper()
	l := &lone{t: t, witness: &witness{}, stop: make(chan struct{})}
	base := m{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "spec": m{},
		"metadata": m{"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "1"},
	}
	l.server = &oneObject{object: patch.ApplyMerge(base, content), version: 1, committed: func() { l.writes++ }}
	handlers := handlersOf(t, declare)
	config := Config{
		Handlers: handlers, Context: withCall, Poster: l.witness,
		Logger: funcr.New(func(_, args string) { l.log = append(l.log, args) }, funcr.Options{}),
	}
	for _, change := range more {
		change(&config)
	}
	e := New(config)
	api, err := kube.New(&rest.Config{Host: "http://localhost", QPS: -1}, &http.Client{Transport: l.server}, kex.Resource, e.Settings)
	if err != nil {
		t.Fatal(err)
	}
	r := newResource(watch.NewResource(kex, api), handlers)
	e.resources.put(r)
	stream := watch.NewStream(t.Context(), r.Resource, "", unobserved{})
	r.Add(stream)
	l.cache, l.workers = stream, &workers{engine: e, term: term{calls: t.Context(), writes: t.Context(), stopping: l.stop}}
	return l
}

// state returns what the operator knows about the object.
func (l *lone) state() *objectState { return l.engine.objects.of(keyOf("a")) }

// show lets the watch show the current version of the object.
func (l *lone) show() {
	l.t.Helper()
	snapshot, err := object.ParseSnapshot([]byte(jsonOf(l.server.object)))
	if err == nil {
		err = l.cache.Add(snapshot)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// begin shows the current version, and begins a pass. Handlers are not called yet.
func (l *lone) begin() *pass {
	l.t.Helper()
	l.show()
	p := l.newPass(l.engine.resources.get(kex.String()), keyOf("a"), &l.workers.term)
	l.engine.permits.Begin(p.key.Resource, nil)
	l.next, l.err = p.begin(l.t.Context())
	return p
}

// end makes the calls of a pass that has begun, and returns when the next one must begin.
func (l *lone) end(p *pass) (wake time.Duration, err error) {
	next, err := makeCalls(p, l.next, l.err)
	l.engine.permits.Release()
	return l.workers.end(p, next, err).RequeueAfter, err
}

// makeCalls makes the calls of a pass that has begun with these results, in one goroutine.
func makeCalls(p *pass, next nextPass, err error) (nextPass, error) {
	if err != nil || p.calling == nil {
		return next, err
	}
	var running *call.Call
	for {
		running, next, err = p.resume(running)
		if running == nil {
			return next, err
		}
		running.Make()
	}
}

// pass shows the current version, and makes a pass over it.
func (l *lone) pass() (wake time.Duration, err error) {
	l.t.Helper()
	return l.end(l.begin())
}

// look makes a pass without a new version of the watch.
func (l *lone) look() (wake time.Duration, err error) {
	l.t.Helper()
	return l.make(l.newPass(l.engine.resources.get(kex.String()), keyOf("a"), &l.workers.term))
}

// make makes a pass that has not begun.
func (l *lone) make(p *pass) (wake time.Duration, err error) {
	l.t.Helper()
	l.engine.permits.Begin(p.key.Resource, nil)
	l.next, l.err = p.begin(l.t.Context())
	return l.end(p)
}

// forget lets the watch show the deletion of the object.
func (l *lone) forget() {
	l.t.Helper()
	cached := l.engine.resources.get(kex.String()).Cached(keyOf("a").NamespacedName)
	if err := l.cache.Delete(cached); err != nil {
		l.t.Fatal(err)
	}
}

// rest makes passes until the object is at rest.
func (l *lone) rest() {
	l.t.Helper()
	for range 10 {
		wake, err := l.pass()
		if err != nil {
			l.t.Fatal(err)
		}
		if l.isAtRest() {
			return
		}
		time.Sleep(wake)
	}
	l.t.Fatalf("the object does not come to rest: %s", jsonOf(l.server.object))
}

func (l *lone) isAtRest() bool { return l.state().reconciledVersion == l.version() }

// isQuiet is isAtRest for an object that may not exist.
func (l *lone) isQuiet() bool { return l.server.object != nil && l.isAtRest() }

// version returns the current version of the object.
func (l *lone) version() string { return l.server.object["metadata"].(m)["resourceVersion"].(string) }

// isHandled reports whether the current state of the spec is stored as handled.
func (l *lone) isHandled() bool {
	return l.server.annotations()[kopfPrefix+"last-handled-configuration"] != nil
}

// finalizers returns those of the object.
func (l *lone) finalizers() []any {
	found, _ := l.server.object["metadata"].(m)["finalizers"].([]any)
	return found
}

func (l *lone) spec() m { return l.server.object["spec"].(m) }

// brokenBase is a storage that fails while err is set.
type brokenBase struct {
	storage.DiffBase

	err error
}

func (b *brokenBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.DiffBase.Fetch(ctx, body)
}

// newLoneWithBase returns an operator with a storage that can fail.
func newLoneWithBase(t *testing.T, content m, declare func(r *registry.Registry)) (*lone, *brokenBase) {
	t.Helper()
	base := &brokenBase{}
	return newLone(t, content, declare, func(c *Config) {
		c.Settings = c.Settings.WithDefaults()
		base.DiffBase = c.Settings.Persistence.DiffBase
		c.Settings.Persistence.DiffBase = base
	}), base
}

var errBroken = errors.New("it is broken")
