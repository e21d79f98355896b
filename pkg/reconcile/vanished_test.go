package reconcile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
	"github.com/kopf-go/kopf/pkg/storage"
)

// web is the content of an object with a label, which the selectors are for.
var web = m{"metadata": m{"labels": m{"app": "web"}}}

// newSelected returns an operator for an object that a watch with selectors shows, at rest. Its deletion handler counts its
// calls.
func newSelected(t *testing.T) (l *lone, deletions *int) {
	t.Helper()
	deletions = new(int)
	l = newLone(t, web, func(r *registry.Registry) {
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
		"others hold its deletion": {func(l *lone) {
			l.server.change(m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z", "finalizers": []any{"another.dev/finalizer"}}})
		}, nil, true, true},
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
			wake, err := l.look()
			if kept := len(l.finalizers()) > 0; err != nil || kept != test.kept || l.isForgotten() != test.forgotten || *deletions > 0 {
				t.Errorf("got the finalizers %v, forgotten: %t, %d deletions, %v", l.finalizers(), l.isForgotten(), *deletions, err)
			}
			if test.forgotten != (wake == 0) {
				t.Errorf("the next pass begins after %s", wake)
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
	for name, known := range map[string]*whereabouts{"it cannot be listed": nil, "it cannot be read": {"u-1", true}} {
		t.Run(name, func(t *testing.T) {
			l, _ := newSelected(t)
			l.vanish()
			l.server.down = true
			p := l.newPass(l.resource(), keyOf("a"), &l.workers.term)
			p.whereabouts = known
			wake, err := l.make(p)
			if err == nil || wake == 0 || l.isForgotten() {
				t.Errorf("got %s, %v, forgotten: %t", wake, err, l.isForgotten())
			}
			l.server.down = false
			if _, err := l.look(); err != nil || len(l.finalizers()) > 0 || !l.isForgotten() {
				t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
			}
		})
	}
}

// What could not be written is written, so that no handler is called again when the object returns.
func TestOutcomeOfAVanishedObjectIsWritten(t *testing.T) {
	l := newLone(t, m{}, creating)
	l.resource().Selection = kube.Selection{Fields: "spec.a=b"}
	l.pending()
	l.vanish()
	l.server.before = func() error { return errBroken }
	if _, err := l.look(); !errors.Is(err, errBroken) || l.isHandled() || l.isForgotten() {
		t.Errorf("got %v, handled: %t, forgotten: %t", err, l.isHandled(), l.isForgotten())
	}
	if _, err := l.look(); err != nil || !l.isHandled() || !l.isForgotten() || !l.has("CycleFinished") {
		t.Errorf("got %v, handled: %t, forgotten: %t, the events %q", err, l.isHandled(), l.isForgotten(), l.events)
	}
}

// Whether the finalizer is needed cannot be decided without the storage.
func TestVanishedObjectWaitsForItsStorage(t *testing.T) {
	for name, fails := range map[string]func(l *lone, base *brokenBase){
		"before the decision": func(_ *lone, base *brokenBase) { base.err = errBroken },
		"before another decision": func(l *lone, base *brokenBase) {
			l.server.before = func() error {
				base.err = errBroken
				l.server.change(m{"spec": m{"a": "b"}})
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, base := newLoneWithBase(t, web, func(r *registry.Registry) {
				r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete")))
			})
			l.resource().Selection = kube.Selection{Labels: "app=web"}
			l.rest()
			l.vanish()
			fails(l, base)
			if _, err := l.look(); !errors.Is(err, errBroken) || len(l.finalizers()) != 1 || l.isForgotten() {
				t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
			}
			base.err = nil
			if _, err := l.look(); err != nil || len(l.finalizers()) != 0 || !l.isForgotten() {
				t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
			}
		})
	}
}

// The object ends while a pass leaves it. The next pass knows that without a request.
func TestVanishedObjectEnds(t *testing.T) {
	remove := func(l *lone) func() error {
		return func() error { l.server.remove(); return nil }
	}
	// handleDeletion calls the deletion handler, whose outcome cannot be written.
	handleDeletion := func(l *lone) {
		l.server.change(m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z"}})
		l.pending()
		l.vanish()
	}
	for name, test := range map[string]struct {
		ends      func(l *lone, p *pass)
		deletions int // calls of the deletion handler
	}{
		"before it is read": {func(l *lone, p *pass) {
			p.whereabouts = &whereabouts{"u-1", true}
			l.server.remove()
		}, 0},
		"before the finalizer is removed":                        {func(l *lone, _ *pass) { l.server.before = remove(l) }, 0},
		"before the outcome of its deletion handler is written":  {func(l *lone, _ *pass) { handleDeletion(l); l.server.before = remove(l) }, 1},
		"because the outcome of its deletion handler is written": {func(l *lone, _ *pass) { handleDeletion(l) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, deletions := newSelected(t)
			l.vanish()
			p := l.newPass(l.resource(), keyOf("a"), &l.workers.term)
			test.ends(l, p)
			if wake, err := l.make(p); err != nil || wake != time.Nanosecond || l.server.object != nil || l.isForgotten() {
				t.Errorf("got %s, %v, %v, forgotten: %t", wake, err, l.server.object, l.isForgotten())
			}
			before := l.server.requests
			if wake, err := l.look(); err != nil || wake != 0 || l.server.requests != before || !l.isForgotten() {
				t.Errorf("got %s, %v, %d requests, forgotten: %t", wake, err, l.server.requests-before, l.isForgotten())
			}
			if *deletions != test.deletions {
				t.Errorf("the deletion handler was called %d times", *deletions)
			}
		})
	}
}

// The state is that of an earlier object of the name: no pass was made between the events of both.
func TestVanishedObjectHasReplacedAnother(t *testing.T) {
	l, _ := newSelected(t)
	l.server.change(m{"metadata": m{"uid": "u-2"}})
	l.show()
	l.vanish()
	if _, err := l.look(); err != nil || len(l.finalizers()) > 0 || !l.isForgotten() {
		t.Errorf("got %v, %v, forgotten: %t", err, l.finalizers(), l.isForgotten())
	}
}

// vanishWithDaemon returns an operator with an object that has vanished while its daemon runs, and has left an edit. The daemon
// ends when the channel is closed, after it was told why.
func vanishWithDaemon(t *testing.T, leave <-chan struct{}, reason *stop.Reason) *lone {
	t.Helper()
	l := newLone(t, web, func(r *registry.Registry) {
		r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
			<-task.Stopped()
			*reason = task.StopReason()
			<-leave
			return nil
		}), handler.ID("daemon")))
	})
	l.resource().Selection = kube.Selection{Labels: "app=web"}
	l.rest()
	synctest.Wait()
	edit := &patch.Patch{}
	edit.Set("x", "spec", "size")
	l.state().background.addEdit(call.Edit{ID: "daemon", Patch: edit})
	l.vanish()
	return l
}

// The finalizer stays, and the object is not forgotten, until the daemons have ended. What they have left is written.
// A daemon that ends while the pass writes leaves the finalizer to the next pass, as one that ends later.
func TestDaemonsOfAVanishedObjectEndFirst(t *testing.T) {
	for name, duringTheWrite := range map[string]bool{"after the pass": false, "during its write": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reason stop.Reason
				leave := make(chan struct{})
				l := vanishWithDaemon(t, leave, &reason)
				defer l.engine.supervisor.Stop(context.Background())
				end := sync.OnceFunc(func() {
					close(leave)
					synctest.Wait()
				})
				if duringTheWrite {
					l.server.committed = end
				}
				wake, err := l.look()
				if err != nil || wake != sightInterval || len(l.finalizers()) != 1 || l.spec()["size"] != "x" || l.isForgotten() {
					t.Errorf("got %s, %v, %v, %v, forgotten: %t", wake, err, l.finalizers(), l.spec(), l.isForgotten())
				}
				end()
				if !reason.Has(stop.Mismatch) {
					t.Errorf("the daemon was stopped because of %v", reason)
				}
				if wake, err := l.look(); err != nil || wake != 0 || len(l.finalizers()) > 0 || !l.isForgotten() {
					t.Errorf("got %s, %v, %v, forgotten: %t", wake, err, l.finalizers(), l.isForgotten())
				}
			})
		})
	}
}

// While a daemon ends, the object is back as it was: that is no change for a timer that waits until the object is idle.
func TestVanishedObjectStaysIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []time.Duration
		began := time.Now()
		l := newLone(t, web, func(r *registry.Registry) {
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
				<-task.Stopped()
				time.Sleep(time.Minute)
				return nil
			}), handler.ID("daemon")))
			r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
				called = append(called, time.Since(began))
				return nil
			}), handler.ID("timer"), handler.Idle(time.Hour)))
		})
		defer l.engine.supervisor.Stop(context.Background())
		l.resource().Selection = kube.Selection{Labels: "app=web"}
		l.rest()
		time.Sleep(30 * time.Minute)
		l.vanish()
		if _, err := l.look(); err != nil || l.isForgotten() {
			t.Errorf("got %v, forgotten: %t", err, l.isForgotten())
		}
		l.engine.objects.reappear(keyOf("a"))
		l.state().reconciledVersion = ""
		l.rest()
		time.Sleep(time.Hour)
		synctest.Wait()
		if !slices.Equal(called, []time.Duration{time.Hour}) {
			t.Errorf("the timer was called after %s", called)
		}
	})
}

// An object is read only if something can be left to write, even if its last known version does not show that.
func TestWhatIsLeftOfAVanishedObjectIsWritten(t *testing.T) {
	events := func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
	}
	addFinalizer := func(l *lone) { l.server.change(withFinalizer) }
	edit := func(l *lone) {
		edit := &patch.Patch{}
		edit.Set("x", "spec", "size")
		l.state().resetFor("u-1")
		l.state().writes.Add(call.Edit{ID: "event", Patch: edit})
	}
	for name, test := range map[string]struct {
		declare func(r *registry.Registry)
		before  func(l *lone) // the watch shows the object
		after   func(l *lone)
		spec    m
		// requests is their number: a list, the read, and the write.
		requests int
	}{
		"nothing": {events, nil, nil, m{}, 1},
		"the finalizer of an earlier version of the operator": {events, addFinalizer, nil, m{}, 3},
		"the finalizer, for handlers of changes": {func(r *registry.Registry) {
			r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("delete")))
		}, nil, addFinalizer, m{}, 3},
		"the finalizer, for daemons": {func(r *registry.Registry) {
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("daemon")))
		}, nil, addFinalizer, m{}, 3},
		"an edit of a handler": {events, nil, edit, m{"size": "x"}, 3},
		"an update": {events, nil, func(l *lone) {
			l.state().resetFor("u-1")
			l.state().writes.Keep(write.Update{})
		}, m{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, web, test.declare)
			l.resource().Selection = kube.Selection{Labels: "app=web"}
			if test.before != nil {
				test.before(l)
			}
			l.show()
			if test.after != nil {
				test.after(l)
			}
			l.vanish()
			if _, err := l.look(); err != nil || l.server.requests != test.requests || len(l.finalizers()) > 0 || !reflect.DeepEqual(l.spec(), test.spec) || !l.isForgotten() {
				t.Errorf("got %v, %d requests, %v, %v, forgotten: %t", err, l.server.requests, l.finalizers(), l.spec(), l.isForgotten())
			}
		})
	}
}

// Slots and children are for others, also if the object can return.
func TestVanishedObjectKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newSelected(t)
		owners := withChildren(t, restingEngine{workers: l.workers}, keyOf("a"))
		claim := call.Claim{Key: keyOf("a"), ID: "create", Pool: "pool", Limit: 1}
		other := call.Claim{Key: keyOf("b"), ID: "create", Pool: "pool", Limit: 1}
		slot := l.engine.slots.Take(other)
		if l.engine.slots.LineUp(claim) || owners() != 1 {
			t.Fatal("there is no limit, or no owner")
		}
		l.engine.slots.Return(slot) // the slot is reserved for the object now
		l.vanish()
		if _, err := l.look(); err != nil || !l.isForgotten() {
			t.Fatalf("got %v, forgotten: %t", err, l.isForgotten())
		}
		synctest.Wait()
		if !l.engine.slots.LineUp(other) {
			t.Error("the slot is still reserved")
		}
		if owners() != 0 {
			t.Error("the object is still an owner of children")
		}
	})
}

// erasingBase is a storage that hears of the ends of objects.
type erasingBase struct{ storage.DiffBase }

func (erasingBase) Erase(context.Context, *object.Body) error { return nil }

// Storages hear only of objects that are gone, and of which they can have kept something. The erasure begins in the next
// turn.
func TestStoragesHearOfVanishedObjectsThatAreDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		declare        func(r *registry.Registry)
		exists, erased bool
	}{
		"it is deleted": {creating, false, true},
		"it exists":     {creating, true, false},
		"handlers of events only": {func(r *registry.Registry) {
			r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, web, test.declare, func(c *Config) {
				c.Settings = c.Settings.WithDefaults()
				c.Settings.Persistence.DiffBase = erasingBase{c.Settings.Persistence.DiffBase}
			})
			l.resource().Selection = kube.Selection{Labels: "app=web"}
			if _, err := l.pass(); err != nil {
				t.Fatal(err)
			}
			l.vanish()
			if !test.exists {
				l.server.remove()
			}
			wake, err := l.look()
			if erased := len(l.engine.erasures.Keys()) > 0; err != nil || erased != test.erased || (wake > 0) != test.erased || !l.isForgotten() {
				t.Errorf("got %s, %v, erased: %t, forgotten: %t", wake, err, erased, l.isForgotten())
			}
		})
	}
}

// A recording says what the watch does not show.
func TestEndOfAVanishedObjectIsRecorded(t *testing.T) {
	for name, exists := range map[string]bool{"it is deleted": false, "it exists": true} {
		t.Run(name, func(t *testing.T) {
			got := passesRecorded(t, creating, func(l *lone) {
				l.resource().Selection = kube.Selection{Labels: "app=web"}
				l.show()
				l.vanish()
				if !exists {
					l.server.remove()
				}
				if _, err := l.look(); err != nil {
					t.Fatal(err)
				}
			})
			if slices.Contains(got, "event DELETED") == exists {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The store of a watch shows first that an object is back. A pass in between handles the object, and waits for the event.
func TestPassBeforeTheEventOfAReturn(t *testing.T) {
	l, _ := newSelected(t)
	l.vanish()
	last := l.engine.objects.lastOf(keyOf("a"))
	l.server.change(m{"spec": m{"a": "b"}})
	if wake, err := l.pass(); err != nil || wake != 0 || !l.isQuiet() || len(l.finalizers()) != 1 || l.engine.objects.lastOf(keyOf("a")) != last {
		t.Errorf("got %s, %v, %v, at rest: %t", wake, err, l.finalizers(), l.isQuiet())
	}
}

// Another version of the resource, or another operator, handles the object.
func TestVanishedObjectThatIsNotWatchedAnymoreIsLeftAlone(t *testing.T) {
	l, _ := newSelected(t)
	l.vanish()
	l.unwatch()
	before := l.server.requests
	if _, err := l.look(); err != nil || l.server.requests != before || len(l.finalizers()) != 1 || l.engine.objects.has(keyOf("a")) {
		t.Errorf("got %v, %d requests, %v", err, l.server.requests-before, l.finalizers())
	}
}

// Two objects of one name have vanished. A pass asks once for each of them.
func TestHandlersHearWhichVanishedObjectIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		exists bool
		events []string
		parent triggers.Change
	}{
		"the later one exists": {true, []string{"DELETED u-0"}, triggers.Left},
		"both are deleted":     {false, []string{"DELETED u-0", "DELETED u-1"}, triggers.Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			var heard []string
			l := newLone(t, web, func(r *registry.Registry) {
				r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
					heard = append(heard, string(c.Event)+" "+string(c.Body().UID()))
					return nil
				}), handler.ID("event")))
			})
			l.resource().Selection = kube.Selection{Labels: "app=web"}
			l.show()
			parent := l.follow()
			last := l.resource().Cached(keyOf("a").NamespacedName)
			former, err := object.ParseSnapshot([]byte(`{"metadata":{"namespace":"ns","name":"a","uid":"u-0","resourceVersion":"0"}}`))
			if err != nil {
				t.Fatal(err)
			}
			l.vanish()
			if !test.exists {
				l.server.remove()
			}
			l.engine.backlog.Open()
			for _, snapshot := range []*object.Snapshot{former, last} {
				l.engine.backlog.Push(keyOf("a"), object.WatchEvent{Type: object.Vanished, Snapshot: snapshot})
			}
			_, err = l.Reconcile(t.Context(), keyOf("a"))
			l.detached.Wait()
			if err != nil || !slices.Equal(heard, test.events) || l.server.requests != 2 || !l.isForgotten() {
				t.Errorf("got %v, the events %q, %d requests, forgotten: %t", err, heard, l.server.requests, l.isForgotten())
			}
			if !slices.Equal(parent.heard, []triggers.Change{test.parent}) {
				t.Errorf("its parent hears %q", parent.heard)
			}
		})
	}
}

// The watch shows the object again after the pass has asked for it. Nothing is forgotten, and its children's parents hear
// nothing else afterwards.
func TestVanishedObjectIsBack(t *testing.T) {
	for name, exists := range map[string]bool{"it exists": true, "it is said not to exist": false} {
		t.Run(name, func(t *testing.T) {
			l, _ := newSelected(t)
			parent := l.follow()
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
			if len(parent.heard) > 0 {
				t.Errorf("its parent hears that it is %q", parent.heard)
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
	l.state().catchUp(l.resource().Cached(keyOf("a").NamespacedName), kube.Version{})
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
