package reconcile

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/queue"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

// ear is a parent that hears of its children.
type ear struct{ heard []triggers.Change }

func (e *ear) Observe(event triggers.Event) { e.heard = append(e.heard, event.Change) }

var webs = triggers.LabeledWith("app", "web")

// asChild lets the object be a child, by its label.
func (l *lone) asChild() {
	r := l.resource()
	r.asChild = &triggers.ChildKind{Resource: r.Resource.Resource, Objects: r.Objects}
	l.engine.children.IndexLabel("app")
	l.engine.children.AddKind(r.asChild)
}

// follow gives the object a parent.
func (l *lone) follow() *ear {
	l.asChild()
	parent := &ear{}
	l.engine.children.Follow(webs, parent, nil)
	return parent
}

// Passes find out what has become of the objects that they handle. What is known of others is only forgotten.
func TestVanishedObjectsAreObserved(t *testing.T) {
	declareEvents := func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
	}
	declareNothing := func(*registry.Registry) {}
	for name, test := range map[string]struct {
		declare  func(r *registry.Registry)
		followed bool
		standby  bool
		events   int // that wait for their handlers
		state    bool
		pass     bool // will find out
	}{
		"handlers of changes":                         {declare: creating, state: true, pass: true},
		"handlers of events":                          {declare: declareEvents, events: 1, state: true, pass: true},
		"no workers":                                  {declare: creating, standby: true},
		"a child":                                     {declare: declareNothing, followed: true, pass: true},
		"a child, and handlers of changes":            {declare: creating, followed: true, state: true, pass: true},
		"a child, and no workers":                     {declare: creating, followed: true, standby: true},
		"an object without a parent that is followed": {declare: declareNothing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, web, test.declare)
				e, key := l.engine, keyOf("a")
				e.backlog.Open()
				l.state()
				l.show()
				last := l.resource().Cached(key.NamespacedName)
				parent := &ear{}
				if test.followed {
					parent = l.follow()
				} else {
					l.asChild()
				}
				q := queue.New("", workqueue.DefaultTypedControllerRateLimiter[object.Key](), logr.Discard())
				defer q.ShutDown()
				if !test.standby {
					e.queue.Store(q)
				}
				consumer{e}.observeVanished(l.resource(), key, object.WatchEvent{Type: object.Vanished, Snapshot: last})
				if !e.mu.TryLock() {
					t.Fatal("the engine is still locked")
				}
				e.mu.Unlock()
				synctest.Wait()
				if e.backlog.Len() != test.events || e.objects.has(key) != test.state {
					t.Errorf("got %d events, known: %t", e.backlog.Len(), e.objects.has(key))
				}
				if remembered := e.objects.lastOf(key) == last; remembered != (test.pass || test.followed) || q.State().Depth > 0 != test.pass {
					t.Errorf("remembered: %t, the queue: %+v", remembered, q.State())
				}
				if inIndex := len(e.children.Of(webs)) > 0; inIndex != test.followed || len(parent.heard) > 0 {
					t.Errorf("a child: %t, its parent hears %q", inIndex, parent.heard)
				}
			})
		})
	}
}

// Parents hear only what a pass has found out.
func TestParentsHearOfVanishedChildren(t *testing.T) {
	for name, test := range map[string]struct {
		exists bool
		want   triggers.Change
	}{
		"it is deleted": {false, triggers.Deleted},
		"it exists":     {true, triggers.Left},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newSelected(t)
			parent := l.follow()
			l.vanish()
			if !test.exists {
				l.server.remove()
			}
			if _, err := l.look(); err != nil || !slices.Equal(parent.heard, []triggers.Change{test.want}) || !l.isForgotten() {
				t.Errorf("got %v, heard %q, forgotten: %t", err, parent.heard, l.isForgotten())
			}
		})
	}
}

// Parents hear nothing of a child that is back, but of the end of one whose name another child has.
func TestParentsHearOfReplacedChildren(t *testing.T) {
	for name, test := range map[string]struct {
		uid  string
		want []triggers.Change
	}{
		"it is back":              {"u-1", nil},
		"another one of its name": {"u-2", []triggers.Change{triggers.Deleted}},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newSelected(t)
			parent := l.follow()
			l.vanish()
			l.server.change(m{"metadata": m{"uid": test.uid}})
			l.show()
			now := l.resource().Cached(keyOf("a").NamespacedName)
			consumer{l.engine}.observeReturn(l.resource(), keyOf("a"), object.WatchEvent{Type: apiwatch.Added, Snapshot: now})
			if !slices.Equal(parent.heard, test.want) || l.engine.objects.lastOf(keyOf("a")) != nil {
				t.Errorf("heard %q", parent.heard)
			}
		})
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
			l.engine.objects.vanish(keyOf("a"), child)
			l.engine.objects.forgetVanished(object.StreamKey{Resource: "pods.v1", Namespace: "other"})
			if l.engine.objects.lastOf(key) == nil {
				t.Error("it was forgotten with another namespace")
			}
			l.engine.objects.forgetVanished(object.StreamKey{Resource: "pods.v1"})
			if l.engine.objects.lastOf(key) != nil {
				t.Error("it is remembered after its watch has ended")
			}
			if l.engine.objects.lastOf(keyOf("a")) == nil {
				t.Error("an object of another resource was forgotten")
			}
		})
	}
}
