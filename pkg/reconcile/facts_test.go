package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/storage"
)

// annotated returns the content of an object with records and other annotations of the operator.
func annotated(annotations map[string]string) m {
	all := m{}
	for name, value := range annotations {
		all[kopfPrefix+name] = value
	}
	return m{"metadata": m{"annotations": all}}
}

// begun is a record of a handler that was called once.
func begun(purpose string) string {
	return `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"` + purpose + `","retries":1}`
}

// This decides whether resume handlers are called once more after the cycle, and whether children must be restored.
func TestFirstLookKnowsWhoHasHandledTheObject(t *testing.T) {
	open := annotated(map[string]string{"create": begun("create")})
	handled := annotated(map[string]string{"last-handled-configuration": `{"spec":{}}`})
	tests := map[string]struct {
		content           m
		initial, selected bool // selected: by the watch
		started, copied   bool // by a predecessor, from another object
		old               bool // the object counts as older than the process
	}{
		"it was being handled before the start":          {open, true, false, true, false, true},
		"it was handled before the start":                {handled, true, false, false, false, true},
		"it was never handled before the start":          {m{}, true, false, false, false, true},
		"it appears with a record":                       {open, false, false, false, true, false},
		"it appears as handled":                          {handled, false, false, false, true, false},
		"it appears":                                     {m{}, false, false, false, false, false},
		"it matches the selectors again with a record":   {open, false, true, true, false, true},
		"it matches the selectors again, and is handled": {handled, false, true, false, false, true},
		"it matches the selectors":                       {m{}, false, true, false, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, test.content, creating)
			if test.selected {
				l.resource().Selection = kube.Selection{Labels: "app=web"}
			}
			s := l.state()
			s.initial.Store(test.initial)
			look := func() {
				l.begin()
				l.engine.permits.Release()
			}
			look()
			if s.startedByPredecessor != test.started || s.copied != test.copied || s.initial.Load() != test.old || !s.seen {
				t.Errorf("begun by a predecessor: %t; copied: %t; old: %t", s.startedByPredecessor, s.copied, s.initial.Load())
			}
			s.startedByPredecessor = false // the cycle has ended
			s.copied = false
			look()
			if s.startedByPredecessor || s.copied {
				t.Error("another look counts as the first one")
			}
		})
	}
}

// Storages of users can be slow or broken. Handlers of events store nothing.
func TestOnlyHandlersOfChangesReadTheStorage(t *testing.T) {
	l, base := newLoneWithBase(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(ignoreEvent)))
	})
	base.err = errBroken
	l.rest()
}

// unlisted is a storage that cannot list its records.
type unlisted struct{ storage.Progress }

func (unlisted) UnknownRecords(context.Context, *object.Body, []string) ([]string, error) {
	return nil, errBroken
}

func TestRemainsOfUndeclaredHandlersAreReported(t *testing.T) {
	children := m{"metadata": m{"annotations": m{convergence.PlacesAnnotation: `["ConfigMap/ns"]`}}}
	ensuring := func(r *registry.Registry) {
		all, err := handler.Ensure(selector.New("kopfexamples"), handlertest.Returning(func(context.Context, *handler.Call) ([]client.Object, error) {
			return nil, nil
		}), handler.ID("children"))
		for _, d := range all {
			r.Add(d, err)
		}
	}
	scheduled := func(r *registry.Registry) {
		creating(r)
		r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("nightly"), handler.Scheduled("0 3 * * *")))
	}
	tests := map[string]struct {
		content m
		declare func(r *registry.Registry)
		want    string // a part of the log; empty if nothing is reported
	}{
		"a record of an unknown handler":  {annotated(map[string]string{"former": begun("create")}), creating, "progress of a handler that is not declared"},
		"a record of a handler":           {annotated(map[string]string{"create": begun("create")}), creating, ""},
		"a record of a triggered handler": {annotated(map[string]string{"tell": begun("")}), func(r *registry.Registry) { creating(r); parental(r, func() {}) }, ""},
		"a record of the runs of a timer": {annotated(map[string]string{"nightly.schedule": begun("")}), scheduled, ""},
		"children of an unknown handler":  {children, creating, "have children of a function of kopf.Ensure"},
		"children of a handler":           {children, ensuring, ""},
		"nothing":                         {m{}, creating, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var book logbook
				l := newLone(t, test.content, test.declare, book.keep)
				defer l.engine.supervisor.Stop(context.Background())
				if _, err := l.pass(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				book.mu.Lock()
				defer book.mu.Unlock()
				log := strings.Join(book.lines, "\n")
				if test.want == "" && strings.Contains(log, "declared") || !strings.Contains(log, test.want) {
					t.Errorf("got the log %s", log)
				}
			})
		})
	}
	l := newLone(t, m{}, creating, func(c *Config) {
		c.Settings = c.Settings.WithDefaults()
		c.Settings.Persistence.Progress = unlisted{c.Settings.Persistence.Progress}
	})
	l.rest()
	if log := strings.Join(l.log, "\n"); strings.Count(log, errBroken.Error()) != 1 {
		t.Errorf("got the log %s", log)
	}
}

// A predecessor has begun the cycle. What its handlers have left in its memory is lost, so those that it may have called
// are called again after the cycle.
func TestEachProcessResumesOnce(t *testing.T) {
	calls := map[string]int{}
	count := func(id string) handler.Function {
		return handlertest.Function(func(context.Context, *handler.Call) error { calls[id]++; return nil })
	}
	content := annotated(map[string]string{
		"last-handled-configuration": `{"spec":{}}`, "update": begun("update"),
		"theirs": `{"started":"2024-02-14T16:58:25.396364+00:00","stopped":"2024-02-14T16:58:26.396364+00:00","purpose":"update","retries":1,"success":true}`,
	})
	content["spec"] = m{"size": 1}
	l := newLone(t, content, func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("kopfexamples"), count("update"), handler.ID("update")))
		r.Add(handler.Resume(selector.New("kopfexamples"), count("theirs"), handler.ID("theirs")))
		r.Add(handler.Resume(selector.New("kopfexamples"), count("ours"), handler.ID("ours")))
	})
	l.state().initial.Store(true)
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	if calls["update"] != 1 || calls["theirs"] != 1 || calls["ours"] != 1 {
		t.Errorf("after one pass, got the calls %v", calls)
	}
	l.server.change(m{"spec": m{"size": 2}})
	l.rest()
	if calls["update"] != 2 || calls["theirs"] != 1 || calls["ours"] != 1 {
		t.Errorf("after another change, got the calls %v", calls)
	}
}

// until returns a daemon that returns when the channel is closed, whatever it is told.
func until(end chan struct{}, options ...handler.BackgroundOption) func(r *registry.Registry) {
	return func(r *registry.Registry) {
		r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			<-end
			return nil
		}), append(options, handler.ID("daemon"))...))
	}
}

func TestFinalizerStaysAsLongAsDaemonsNeedIt(t *testing.T) {
	on := handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})
	tests := map[string]struct {
		prepare func(l *lone)
		stays   bool
	}{
		"the daemon goes on":              {func(*lone) {}, true},
		"the daemon has not returned yet": {func(l *lone) { l.server.change(m{"metadata": m{"labels": m{"off": "yes"}}}) }, true},
		"its object was not watched meanwhile, and does not match": {func(l *lone) {
			l.engine.objects.remove(keyOf("a"), stop.Mismatch)
			l.server.change(m{"metadata": m{"labels": m{"off": "yes"}}})
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				l := newLone(t, m{}, until(end, on))
				l.rest()
				synctest.Wait()
				test.prepare(l)
				l.rest()
				if got := len(l.finalizers()) == 1; got != test.stays {
					t.Errorf("while the daemon is running, got %v", l.finalizers())
				}
				close(end)
				synctest.Wait()
				l.state().reconciledVersion = ""
				l.rest()
				if len(l.finalizers()) != 0 {
					t.Errorf("after its end, got %v", l.finalizers())
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}

func TestHandledObjectsAreNotResumedAgain(t *testing.T) {
	var j journal
	l := newLone(t, annotated(map[string]string{"last-handled-configuration": `{"spec":{}}`}), func(r *registry.Registry) {
		r.Add(handler.Resume(selector.New("kopfexamples"), j.waiting(0), handler.ID("resume")))
	})
	l.state().initial.Store(true)
	for range 2 {
		l.state().reconciledVersion = ""
		l.rest()
	}
	if len(j.ended) != 1 {
		t.Errorf("%d calls", len(j.ended))
	}
}

// Most objects of some operators match no daemon. They must not cost memory.
func TestObjectsWithoutDaemonsHaveNoBackground(t *testing.T) {
	on := handler.Labels(map[string]handler.Matcher{"off": handler.Absent()})
	l := newLone(t, m{"metadata": m{"labels": m{"off": "yes"}}}, until(nil, on))
	l.rest()
	if l.state().background != nil {
		t.Error("there is a background")
	}
}

// Nothing may hold a deletion that needs no storing.
func TestAttemptsOfADeletionCountWhileNothingCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		l := newLone(t, marked, func(r *registry.Registry) {
			r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
				attempts = append(attempts, c.Attempt.Retry)
				return handler.Temporary(errBroken, time.Second)
			}), handler.ID("delete")))
		})
		l.server.refuses = true
		for len(attempts) < 3 {
			wake, err := l.pass()
			if wake == 0 {
				t.Fatalf("no pass follows: %v", err)
			}
			time.Sleep(wake)
		}
		if !slices.Equal(attempts, []int{0, 1, 2}) {
			t.Errorf("got %v", attempts)
		}

		// In another history of the cluster, the object is not being deleted.
		for _, deletion := range []any{"2024-02-14T16:58:25Z", nil} {
			body := object.NewBody(patch.ApplyMerge(l.server.object, m{"metadata": m{"deletionTimestamp": deletion}}))
			f, err := l.newPass(l.resource(), keyOf("a"), &l.workers.term).facts(t.Context(), body)
			if err != nil || len(f.Stored.Progress.Records()) > 0 != (deletion != nil) {
				t.Errorf("deleted at %v: got %v, %v", deletion, f.Stored.Progress.Records(), err)
			}
		}
	})
}
