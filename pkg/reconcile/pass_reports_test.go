package reconcile

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestMisfitsOfEventsAndIndicesAreReportedUntilTheyFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o objects
		var lines []heldobjects.Line
		o.misfits.Report = func(line heldobjects.Line) { lines = append(lines, line) }
		d := &handler.Declaration{ID: "index"}
		of := heldobjects.Finding{Reason: metrics.Misfit, By: "index"}
		for range 2 {
			o.recordMisfit(keyOf("a"), d, &handler.MisfitError{Type: "T", Field: "spec.size", Err: errBroken})
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		if _, held := o.held.Since(keyOf("a"), of, "index"); !held || len(lines) != 1 || lines[0].Field != "spec.size" {
			t.Errorf("held: %t, got %v", held, lines)
		}
		o.recordMisfit(keyOf("a"), d, nil)
		if _, held := o.held.Since(keyOf("a"), of, "index"); held {
			t.Error("the object fits, but counts as held")
		}
	})
}

// An event handler runs without a permit, but the pass after it has one.
func TestEventHandlersKeepThePermitsBalanced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hear(t)
		w.engine.permits = call.NewPermits(1)
		w.pass(object.WatchEvent{Type: apiwatch.Added, Snapshot: w.first})
		w.engine.permits.Begin("one", nil)
		go func() { w.engine.permits.Begin("two", nil); w.engine.permits.Release() }()
		synctest.Wait()
		if got := w.engine.permits.Waiting(); got != 1 {
			t.Errorf("%d wait for the only permit", got)
		}
		w.engine.permits.Release()
	})
}

// After a write without an answer, the object is read.
func TestObjectThatCannotBeReadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, creating)
		l.pending()
		l.server.down = true
		if _, err := l.pass(); !errors.Is(err, errConnection) || l.state().failures != 2 {
			t.Errorf("got %v, %d failures", err, l.state().failures)
		}
	})
}

// What handlers have left before is written to a suspended object, too.
func TestEditOfASuspendedObjectIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{"metadata": m{"annotations": m{kopfPrefix + "request-suspend": "forever"}}}, creating)
		l.state().resetFor("u-1")
		edit := &patch.Patch{}
		edit.Set("x", "spec", "size")
		l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
		l.server.before = func() error { return errBroken }
		if _, err := l.pass(); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	})
}

// A change that no handler is for is only recorded.
func TestChangeWithoutCallsIsRecorded(t *testing.T) {
	tests := map[string]struct {
		before func(l *lone) error
		fails  bool
		rounds int
	}{
		"it is written":           {func(*lone) error { return nil }, false, 0},
		"the write fails":         {func(*lone) error { return errBroken }, true, 0},
		"others write, meanwhile": {func(l *lone) error { l.server.change(m{"status": m{"phase": "x"}}); return nil }, false, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, m{}, func(r *registry.Registry) {
				r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("update")))
			})
			l.server.before = func() error { return test.before(l) }
			p := l.begin()
			if _, err := l.end(p); errors.Is(err, errBroken) != test.fails || int(p.rounds) != test.rounds || l.isAtRest() == test.fails {
				t.Errorf("got %d rounds, %v; the object is at rest: %t", p.rounds, err, l.isAtRest())
			}
		})
	}
}

// Whatever a pass finds out is an event of the object, once.
func TestPassReportsWhatItFinds(t *testing.T) {
	sel := selector.New("kopfexamples")
	fn := handlertest.Function(ignoreChange)
	typed := func(r *registry.Registry) {
		r.Add(handler.Create(sel, handlertest.Typed(&corev1.Pod{}, ignoreChange), handler.ID("typed")))
	}
	unfit := m{"spec": m{"hostNetwork": "yes"}}
	updated := annotated(map[string]string{"last-handled-configuration": `{"spec":{}}`, "picky": begun("update")})
	updated["spec"] = m{"size": 1}
	requested := annotated(map[string]string{"last-handled-configuration": `{"spec":{}}`, "request-rerun": "1 update"})
	tests := map[string]struct {
		content m
		declare func(r *registry.Registry)
		want    string
	}{
		"the object does not fit":                                {unfit, typed, "ObjectMisfit"},
		"the object does not fit, and another handler is called": {unfit, func(r *registry.Registry) { typed(r); creating(r) }, "ObjectMisfit"},
		"a filter does not match anymore": {updated, func(r *registry.Registry) {
			r.Add(handler.Update(sel, fn, handler.ID("update")))
			r.Add(handler.Update(sel, fn, handler.ID("picky"), handler.Labels(map[string]handler.Matcher{"wanted": handler.Present()})))
		}, "HandlerDropped"},
		"a failed handler holds the deletion": {marked, func(r *registry.Registry) {
			r.Add(handler.Delete(sel, handlertest.Function(func(context.Context, *handler.Call) error { return handler.Permanent(errBroken) }), handler.ID("delete"), handler.HoldOnFailure()))
		}, "DeletionHeld"},
		"a request": {requested, func(r *registry.Registry) { r.Add(handler.Update(sel, fn, handler.ID("update"))) }, "RequestHonored"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, test.content, test.declare)
			for range 3 {
				if _, err := l.pass(); err != nil {
					t.Fatal(err)
				}
				if got := strings.Count(strings.Join(l.events, "\n"), " "+test.want+": "); got != 1 {
					t.Errorf("got the events %q", l.events)
				}
			}
			if l.server.annotations()[kopfPrefix+"typed"] != nil {
				t.Error("a handler that was not called has a record")
			}
		})
	}
}

// A deletion that has handlers is an event, and so is one whose handlers are skipped by a request.
func TestOnlyTheEndsOfCallsAreReported(t *testing.T) {
	update := func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("update")))
	}
	changed := func(annotations map[string]string) m {
		annotations["last-handled-configuration"] = `{"spec":{}}`
		content := annotated(annotations)
		content["spec"] = m{"size": 1}
		return content
	}
	tests := map[string]struct {
		content m
		want    bool
	}{
		"a handler is called":            {changed(map[string]string{}), true},
		"a handler is skipped":           {changed(map[string]string{"request-skip": "1 update"}), true},
		"no handler is for the creation": {m{}, false},
	}
	for name, test := range tests {
		l := newLone(t, test.content, update)
		l.rest()
		if l.has("CycleFinished") != test.want || !l.isHandled() {
			t.Errorf("%s: got the events %q", name, l.events)
		}
	}
}

// What a handler wants for its object may still be refused.
func TestSuccessIsReportedWhenTheEditIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, func(r *registry.Registry) {
			r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
				c.Context.Patch.Set("x", "status", "phase")
				return nil
			}), handler.ID("create")))
		})
		l.pending()
		if l.has("HandlerSucceeded") {
			t.Errorf("before the write, got the events %q", l.events)
		}
		time.Sleep(time.Hour)
		l.rest()
		if got := strings.Count(strings.Join(l.events, "\n"), "HandlerSucceeded"); got != 1 {
			t.Errorf("got the events %q", l.events)
		}
	})
}

// After a start, many objects can have a problem that their former operator has reported.
func TestKnownMisfitsAreNoEvents(t *testing.T) {
	for name, initial := range map[string]bool{"an object from before the start": true, "a new object": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, m{"spec": m{"hostNetwork": "yes"}}, func(r *registry.Registry) {
					r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Typed(&corev1.Pod{}, ignoreChange), handler.ID("typed")))
				})
				l.state().initial.Store(initial)
				if _, err := l.pass(); err != nil || l.has("ObjectMisfit") == initial {
					t.Errorf("got %v, and the events %q", err, l.events)
				}
				for _, correction := range []m{{"hostNetwork": nil, "hostPID": "yes"}, {"hostPID": nil}} {
					l.server.change(m{"spec": correction})
					if _, err := l.pass(); err != nil || !l.has("ObjectMisfit") {
						t.Errorf("after a change, got %v, and the events %q", err, l.events)
					}
				}
			})
		})
	}
}

// A checkpoint and the end of a cycle do not report the same success.
func TestSuccessBeforeACheckpointIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(t, m{}, func(r *registry.Registry) {
			for _, id := range []string{"a", "b"} {
				r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
					c.Context.Patch.Set("x", "status", id)
					time.Sleep(time.Minute)
					return nil
				}), handler.ID(id)))
			}
		})
		l.rest()
		if got := strings.Count(strings.Join(l.events, "\n"), "HandlerSucceeded"); got != 2 || l.writes < 2 {
			t.Errorf("after %d writes, got the events %q", l.writes, l.events)
		}
	})
}

// unmarshalable is a storage whose essences are no JSON.
type unmarshalable struct{ storage.DiffBase }

func (unmarshalable) Build(*object.Body, []object.Path) object.Essence {
	return object.Essence{"spec": m{"size": math.Inf(1)}}
}

// brokenProgress is a storage that cannot be read.
type brokenProgress struct{ storage.Progress }

func (brokenProgress) Fetch(context.Context, *object.Body, string) (*storage.Record, error) {
	return nil, errBroken
}

// The code of users and the storages can fail anywhere in a pass, which is tried again.
func TestErrorsAreThoseOfThePass(t *testing.T) {
	sel := selector.New("kopfexamples")
	fn := handlertest.Function(ignoreChange)
	tests := map[string]struct {
		declare func(r *registry.Registry)
		change  func(c *Config)
		want    string
	}{
		"a filter": {func(r *registry.Registry) {
			r.Add(handler.Create(sel, fn, handler.ID("create"), handlertest.When(func(*handler.Call) bool { panic("oops") })))
		}, func(*Config) {}, "oops"},
		"the essence, for a timer": {func(r *registry.Registry) {
			r.Add(handler.Timer(sel, fn, handler.ID("timer"), handler.Interval(time.Hour), handler.Idle(time.Hour)))
		}, func(c *Config) { c.Settings.Persistence.DiffBase = unmarshalable{c.Settings.Persistence.DiffBase} }, "unsupported value"},
		"the essence, for a handler that waits": {func(r *registry.Registry) {
			r.Add(handler.Create(sel, fn, handler.ID("create"), handler.Idle(time.Hour)))
		}, func(c *Config) { c.Settings.Persistence.DiffBase = unmarshalable{c.Settings.Persistence.DiffBase} }, "unsupported value"},
		"the records of change handlers": {creating, func(c *Config) {
			c.Settings.Persistence.Progress = brokenProgress{c.Settings.Persistence.Progress}
		}, errBroken.Error()},
		"the records of others": {func(r *registry.Registry) { parental(r, func() {}) }, func(c *Config) {
			c.Settings.Persistence.Progress = brokenProgress{c.Settings.Persistence.Progress}
		}, errBroken.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLone(t, m{}, test.declare, func(c *Config) {
					c.Settings = c.Settings.WithDefaults()
					test.change(c)
				})
				setUpChildren(l.engine)
				wake, err := l.pass()
				if err == nil || !strings.Contains(err.Error(), test.want) || wake == 0 || l.state().failures != 1 || l.isAtRest() {
					t.Errorf("got %s, %v, %d failures", wake, err, l.state().failures)
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}
