package reconcile

import (
	"context"
	"strings"
	"testing"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// newSelected returns an operator for an object that a watch with selectors shows, at rest. Its deletion handler counts its
// calls.
func newSelected(t *testing.T) (l *lone, deletions *int) {
	t.Helper()
	deletions = new(int)
	l = newLone(t, m{}, func(r *registry.Registry) {
		creating(r)
		r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			*deletions++
			return nil
		}), handler.ID("delete")))
	})
	l.resource().Selection = kube.Selection{Labels: "app=web"}
	l.rest()
	if len(l.finalizers()) != 1 {
		t.Fatalf("got %v", l.finalizers())
	}
	return l, deletions
}

func (l *lone) resource() *resource { return l.engine.resources.get(kex.String()) }

// vanish lets the watch show that the object is deleted or not selected anymore.
func (l *lone) vanish() {
	l.t.Helper()
	cached := l.resource().Cached(keyOf("a").NamespacedName)
	l.forget()
	l.engine.objects.vanish(keyOf("a"), cached)
}

// isForgotten reports whether nothing is known of the object anymore.
func (l *lone) isForgotten() bool {
	return !l.engine.objects.has(keyOf("a")) && l.engine.objects.lastOf(keyOf("a")) == nil
}

// The object changes while the pass removes the finalizer. The decision is made again for each version.
func TestFinalizerOfAVanishedObject(t *testing.T) {
	for name, test := range map[string]struct {
		before    func(l *lone)
		after     func(l *lone) // at the write that removes the finalizer
		kept      bool
		forgotten bool
	}{
		"it is out of sight":                {func(*lone) {}, nil, false, true},
		"others change it":                  {func(*lone) {}, func(l *lone) { l.server.change(m{"spec": m{"a": "b"}}) }, false, true},
		"it is deleted meanwhile":           {func(*lone) {}, func(l *lone) { l.server.change(m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z"}}) }, true, false},
		"it is shown again meanwhile":       {func(*lone) {}, func(l *lone) { l.server.change(m{"spec": m{"a": "b"}}); l.show() }, true, true},
		"the finalizer is gone":             {func(l *lone) { l.server.change(m{"metadata": m{"finalizers": nil}}) }, nil, false, true},
		"the finalizer was removed by hand": {func(*lone) {}, func(l *lone) { l.server.change(m{"metadata": m{"finalizers": nil}}) }, false, true},
		"another version needs it": {func(l *lone) {
			l.resource().Handlers.Unserved = handlersOf(l.t, func(r *registry.Registry) {
				r.Add(handler.Delete(selector.New("others"), handlertest.Function(ignoreChange), handler.ID("other")))
			})
		}, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, deletions := newSelected(t)
			test.before(l)
			l.vanish()
			if test.after != nil {
				l.server.before = func() error { test.after(l); return nil }
			}
			_, err := l.look()
			if kept := len(l.finalizers()) > 0; err != nil || kept != test.kept || l.isForgotten() != test.forgotten || *deletions > 0 {
				t.Errorf("got the finalizers %v, forgotten: %t, %d deletions, %v", l.finalizers(), l.isForgotten(), *deletions, err)
			}
			said := strings.Contains(strings.Join(l.log, "\n"), "does not match the selectors of the settings anymore")
			if hadAny := name != "the finalizer is gone"; said != (hadAny && !test.kept) {
				t.Errorf("got the log %q", l.log)
			}
			if test.forgotten {
				return
			}
			for range 3 { // the deletion is finished
				if _, err := l.look(); err != nil {
					t.Error(err)
				}
			}
			if l.server.object != nil || *deletions != 1 || !l.isForgotten() {
				t.Errorf("got %v, %d deletions, forgotten: %t", l.server.object, *deletions, l.isForgotten())
			}
		})
	}
}

// While nothing can be read, nothing is concluded, and nothing is lost.
func TestVanishedObjectWaitsForTheAPIServer(t *testing.T) {
	l, _ := newSelected(t)
	l.vanish()
	l.server.down = true
	wake, err := l.look()
	if err == nil || wake == 0 || l.isForgotten() {
		t.Errorf("got %s, %v, forgotten: %t", wake, err, l.isForgotten())
	}
	l.server.down = false
	if _, err := l.look(); err != nil || len(l.finalizers()) > 0 || !l.isForgotten() {
		t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
	}
}

// What could not be written is written, so that no handler is called again when the object returns.
func TestOutcomeOfAVanishedObjectIsWritten(t *testing.T) {
	l := newLone(t, m{}, creating)
	l.resource().Selection = kube.Selection{Fields: "spec.a=b"}
	l.pending()
	l.vanish()
	l.state().notBefore = l.state().notBefore.AddDate(-1, 0, 0)
	if _, err := l.look(); err != nil || !l.isHandled() || !l.isForgotten() {
		t.Errorf("got %v, handled: %t, forgotten: %t", err, l.isHandled(), l.isForgotten())
	}
}

// The watch shows the object again after the pass has asked for it. Nothing is forgotten, and its children's parents hear
// nothing else afterwards.
func TestVanishedObjectIsBack(t *testing.T) {
	for name, exists := range map[string]bool{"it exists": true, "it is said not to exist": false} {
		t.Run(name, func(t *testing.T) {
			l, _ := newSelected(t)
			cached := l.resource().Cached(keyOf("a").NamespacedName)
			l.vanish()
			p := l.newPass(l.resource(), keyOf("a"), &l.workers.term)
			p.whereabouts = &whereabouts{cached.GetUID(), exists}
			l.show()
			told := l.engine.objects.reappear(keyOf("a"))
			if told != cached {
				t.Errorf("got %v", told)
			}
			next, err := p.leaveVanished(t.Context(), cached)
			if err != nil || next != in(0) || !l.engine.objects.has(keyOf("a")) || l.engine.objects.ifVanished(keyOf("a"), cached, func() { t.Error("called") }) {
				t.Errorf("got %+v, %v", next, err)
			}
			if _, err := l.look(); err != nil || !l.isQuiet() || len(l.finalizers()) != 1 {
				t.Errorf("got %v, %v", err, l.finalizers())
			}
		})
	}
}

// A resource can be watched only because its objects are children. No pass handles them: it would take the finalizer away
// from those that another operator handles.
func TestVanishedChildThatIsBackIsLeftAlone(t *testing.T) {
	l := newLone(t, m{"metadata": m{"finalizers": []any{"kopf.zalando.org/KopfFinalizerMarker"}}}, func(*registry.Registry) {})
	l.resource().Selection = kube.Selection{Labels: "app=web"}
	l.show()
	if result, err := l.Reconcile(t.Context(), keyOf("a")); err != nil || result.RequeueAfter != 0 || l.server.requests != 0 || !l.isForgotten() {
		t.Errorf("got %v, %v, %d requests, forgotten: %t", result, err, l.server.requests, l.isForgotten())
	}
	l.vanish()
	if _, err := l.look(); err != nil || l.server.requests != 1 || len(l.finalizers()) != 1 || !l.isForgotten() {
		t.Errorf("got %v, %d requests, %v", err, l.server.requests, l.finalizers())
	}
}

// An object that only handlers of events have seen needs one request.
func TestOneRequestFindsOut(t *testing.T) {
	for name, exists := range map[string]bool{"it is deleted": false, "it exists": true} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
			})
			l.resource().Selection = kube.Selection{Labels: "app=web"}
			if _, err := l.pass(); err != nil {
				t.Fatal(err)
			}
			l.vanish()
			if !exists {
				l.server.remove()
			}
			before := l.server.requests
			if _, err := l.look(); err != nil || l.server.requests != before+1 || !l.isForgotten() {
				t.Errorf("got %d requests, %v, forgotten: %t", l.server.requests-before, err, l.isForgotten())
			}
		})
	}
}

// The store of a watch shows first that an object is missing. A pass in between waits for the event.
func TestPassWaitsForTheEventOfAVanishedObject(t *testing.T) {
	l, _ := newSelected(t)
	cached := l.resource().Cached(keyOf("a").NamespacedName)
	l.forget()
	before := l.server.requests
	if _, err := l.look(); err != nil || l.server.requests != before || !l.engine.objects.has(keyOf("a")) {
		t.Errorf("got %v, %d requests", err, l.server.requests-before)
	}
	l.engine.objects.vanish(keyOf("a"), cached)
	if _, err := l.look(); err != nil || len(l.finalizers()) > 0 || !l.isForgotten() {
		t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
	}
}

// A replica on standby finds at its start of work that a list does not have the object. The watch shows that later.
func TestObjectThatIsNotListedCanBeOutOfSight(t *testing.T) {
	l, _ := newSelected(t)
	l.state().catchUp(l.resource().Cached(keyOf("a").NamespacedName), kube.Version{}, true)
	l.state().reconciledVersion = ""
	before := l.server.requests
	if _, err := l.look(); err != nil || l.server.requests != before || len(l.finalizers()) == 0 {
		t.Errorf("got %v, %d requests, %v", err, l.server.requests-before, l.finalizers())
	}
	l.vanish()
	if _, err := l.look(); err != nil || len(l.finalizers()) > 0 || !l.isForgotten() {
		t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
	}
}

// Without workers, there are no passes. Only the children of parents that are handled wait for them.
func TestStandbyForgetsVanishedObjects(t *testing.T) {
	vanished := object.WatchEvent{Type: object.Vanished, Snapshot: seen(t, "8")}
	e := New(Config{})
	r := served(t, e, handlersOf(t, onEvent))
	r.Selection = kube.Selection{Labels: "app=web"}
	consumer{e}.Observe(t.Context(), r.Resource, object.WatchEvent{Snapshot: seen(t, "7")})
	consumer{e}.Observe(t.Context(), r.Resource, vanished)
	if len(e.objects.states) != 0 || e.objects.lastOf(keyOf("a")) != nil || e.backlog.Len() != 0 {
		t.Error("the object is remembered")
	}
}

// Children are told apart from other objects: only of these, the parents must learn what has become of them.
func TestVanishedChildrenWithFollowersAreRemembered(t *testing.T) {
	for name, followed := range map[string]bool{"a child of a handled parent": true, "another object": false} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, func(r *registry.Registry) { parental(r, func() {}) })
			setUpChildren(l.engine)
			if _, err := l.pass(); err != nil {
				t.Fatal(err)
			}
			if followed {
				observeChild(t, l.engine, keyOf("a"))
			}
			kind := newResource(l.resource().Resource, nil)
			kind.asChild = pods
			child, err := object.ParseSnapshot([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":"a","uid":"child-of-a"}}`))
			if err != nil {
				t.Fatal(err)
			}
			key := object.Key{Resource: "pods.v1", NamespacedName: keyOf("a").NamespacedName}
			c := consumer{l.engine}
			c.observeVanished(kind, key, object.WatchEvent{Type: object.Vanished, Snapshot: child})
			if got := l.engine.objects.lastOf(key); (got != nil) != followed {
				t.Errorf("remembered: %t", got != nil)
			}
			if got := l.engine.objects.vanishedIn(object.StreamKey{Resource: "pods.v1"}); (len(got) > 0) != followed {
				t.Errorf("got %v", got)
			}
			kind.Selection = kube.Selection{Labels: "app=web"}
			c.observeReturn(kind, key, object.WatchEvent{Type: apiwatch.Added, Snapshot: child})
			l.engine.objects.vanish(key, child)
			l.engine.objects.forgetVanished(object.StreamKey{Resource: "pods.v1", Namespace: "other"})
			if l.engine.objects.lastOf(key) == nil {
				t.Error("it was forgotten with another namespace")
			}
			l.engine.objects.forgetVanished(object.StreamKey{Resource: "pods.v1"})
			if l.engine.objects.lastOf(key) != nil {
				t.Error("it is remembered after its watch has ended")
			}
		})
	}
}
