package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// plan makes the plan for the current version of the object.
func (l *lone) plan() (*cycle, error) {
	l.show()
	p := l.newPass(l.engine.resources.get(kex.String()), keyOf("a"))
	return p.plan(l.t.Context(), p.resource.Cached(p.key.NamespacedName).Body())
}

// mustPlan is plan without an error.
func (l *lone) mustPlan() *cycle {
	l.t.Helper()
	c, err := l.plan()
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// recorded returns annotations with the unfinished record of a handler.
func recorded(id string, purpose cause.Reason) m {
	return m{"metadata": m{"annotations": m{kopfPrefix + id: `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"` + string(purpose) + `","retries":1}`}}}
}

var marked = m{"metadata": m{"deletionTimestamp": "2024-02-14T16:58:25Z", "finalizers": []any{"kopf.zalando.org/KopfFinalizerMarker"}}}

func TestHandlersHaveWorkOnlyInAnOpenCycle(t *testing.T) {
	tests := map[string]struct {
		reason          cause.Reason
		inScope         bool
		nothing, isOpen bool
	}{
		"a change of an object in scope": {cause.Update, true, false, true},
		"no handler applies":             {cause.Update, false, true, false},
		"nothing has happened":           {cause.NoOp, true, true, false},
	}
	for name, test := range tests {
		progress := call.NewProgress(func(string) *storage.Record { return nil })
		c := cycle{Plan: &plan.Plan{Cause: handler.Cause{Reason: test.reason}, InScope: test.inScope, Cycle: &record.Cycle{Progress: progress}}}
		progress.Include("a", cause.Update, false)
		if c.NothingToDo() != test.nothing || c.isOpen("a") != test.isOpen || c.isOpen("b") {
			t.Errorf("%s: nothing to do: %t; the handler is open: %t, another one: %t", name, c.NothingToDo(), c.isOpen("a"), c.isOpen("b"))
		}
	}
}

type brokenProgress struct {
	storage.Progress

	err error
}

func (p *brokenProgress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p.Progress.Fetch(ctx, body, id)
}

type brokenCycle struct {
	storage.DiffBase
	storage.CycleBase

	err   error
	reads int
}

func (b *brokenCycle) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	b.reads++
	if b.err != nil {
		return nil, b.err
	}
	return b.CycleBase.FetchCycle(ctx, body)
}

// Only the stored state shows what has happened.
func TestDetectionNeedsEverythingThatIsStored(t *testing.T) {
	for name, fail := range map[string]func(c *Config) *error{
		"the base": func(c *Config) *error {
			b := &brokenBase{DiffBase: c.Settings.Persistence.DiffBase}
			c.Settings.Persistence.DiffBase = b
			return &b.err
		},
		"the records": func(c *Config) *error {
			p := &brokenProgress{Progress: c.Settings.Persistence.Progress}
			c.Settings.Persistence.Progress = p
			return &p.err
		},
		"the open cycle": func(c *Config) *error {
			b := &brokenCycle{DiffBase: c.Settings.Persistence.DiffBase}
			b.CycleBase = b.DiffBase.(storage.CycleBase)
			c.Settings.Persistence.DiffBase = b
			return &b.err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var failure *error
			l := newLone(t, recorded("create", cause.Create), creating, func(c *Config) {
				c.Settings = c.Settings.WithDefaults()
				failure = fail(c)
			})
			if c, err := l.plan(); err != nil || len(c.Handlers) != 1 {
				t.Errorf("got %v", err)
			}
			*failure = errBroken
			if c, err := l.plan(); !errors.Is(err, errBroken) || c != nil {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

// This decides whether resume handlers are called once more after the cycle.
func TestFirstDetectionKnowsWhoBeganTheCycle(t *testing.T) {
	tests := map[string]struct {
		content       m
		initial, want bool
	}{
		"a record that is older than the process": {recorded("create", cause.Create), true, true},
		"a record of an object created meanwhile": {recorded("create", cause.Create), false, false},
		"no record": {m{}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, test.content, creating)
			l.state().initial.Store(test.initial)
			if l.mustPlan(); l.state().startedByPredecessor != test.want || !l.state().seen {
				t.Errorf("got %t", l.state().startedByPredecessor)
			}
			l.state().startedByPredecessor = false // the cycle has ended
			if l.mustPlan(); l.state().startedByPredecessor {
				t.Error("another cycle counts as begun by the predecessor")
			}
		})
	}
}

func TestObjectIsInitialUntilItIsHandled(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) {
		creating(r)
		r.Add(handler.Resume(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("resume")))
	})
	l.rest()
	for _, test := range []struct {
		initial, handled bool
		want             cause.Reason
	}{{true, false, cause.Resume}, {true, true, cause.NoOp}, {false, false, cause.NoOp}} {
		l.state().initial.Store(test.initial)
		l.state().handled = test.handled
		if c := l.mustPlan(); c.Reason != test.want || c.Cycle.Reason != test.want {
			t.Errorf("initial %t, handled %t: got %q", test.initial, test.handled, c.Reason)
		}
	}
}

// Resume handlers are called along with those of a change; any other record is about an earlier
// change.
func TestOnlyRecordsOfResumeHandlersCountForOtherChanges(t *testing.T) {
	update, resume := &handler.Declaration{ID: "update", Kind: handler.OnUpdate}, &handler.Declaration{ID: "resume", Kind: handler.OnResume}
	tests := map[string]struct {
		reason, purpose cause.Reason
		handler         *handler.Declaration
		want            bool
		open            bool // the handler has not finished
	}{
		"the handler has finished in this cycle":       {cause.Update, cause.Update, update, true, false},
		"the handler has finished in an earlier cycle": {cause.Update, cause.Create, update, false, false},
		"the resume handler has finished earlier":      {cause.Update, cause.Resume, resume, true, false},
		"the resume handler, before a deletion":        {cause.Delete, cause.Resume, resume, false, false},
		"the resume handler has not finished":          {cause.Update, cause.Resume, resume, false, true},
	}
	for name, test := range tests {
		progress := call.NewProgress(func(string) *storage.Record {
			return &storage.Record{Purpose: test.purpose, Success: !test.open, Started: time.Now(), Stopped: time.Now()}
		})
		c := &cycle{Plan: &plan.Plan{Cause: handler.Cause{Reason: test.reason}, Cycle: &record.Cycle{Progress: progress}, Handlers: registry.Handlers{test.handler}}}
		if got := c.HasFinished(test.handler); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
		c.include()
		if got := progress.Load(test.handler.ID).Finished(); got != test.want {
			t.Errorf("%s: it is not called: %t", name, got)
		}
	}
}

func TestDaemonsNeedTheFinalizerWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := make(chan struct{})
		l := newLone(t, m{"metadata": m{"labels": m{"daemon": "yes"}}}, func(r *registry.Registry) {
			daemon := func(context.Context, *handler.Call) error { <-running; return nil }
			tick := func(context.Context, *handler.Call) error { return nil }
			on := handler.Labels(map[string]handler.Matcher{"daemon": handler.Equal("yes")})
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(daemon), handler.ID("daemon"), on))
			r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(tick), handler.ID("timer"), handler.Interval(time.Hour),
				handler.Labels(map[string]handler.Matcher{"timer": handler.Equal("yes")})))
		})
		defer l.engine.supervisor.Stop(context.Background())
		expect := func(when string, needed bool, ids ...string) {
			t.Helper()
			if c := l.mustPlan(); c.NeedsFinalizer != needed || !slices.Equal(plan.IDsOf(c.Background), ids) {
				t.Errorf("%s: the finalizer is needed: %t; matching are %q", when, c.NeedsFinalizer, plan.IDsOf(c.Background))
			}
		}
		label := func(daemon, timer any) {
			l.server.change(m{"metadata": m{"labels": m{"daemon": daemon, "timer": timer}}})
		}
		label(nil, nil)
		if expect("nothing matches", false); l.state().background != nil {
			t.Error("the object takes memory for daemons that it does not have")
		}
		label(nil, "yes")
		expect("a timer matches", false, "timer")
		label("yes", nil)
		expect("a daemon matches", true, "daemon")
		l.rest()
		synctest.Wait()
		label(nil, nil)
		expect("a daemon runs that does not match anymore", true)
		label("yes", nil)
		l.server.change(marked)
		expect("a daemon runs while its object is being deleted", true)
		close(running)
		synctest.Wait()
		expect("the daemon has ended", false)
	})
}

// People see why nothing happens.
func TestRequestWithoutWorkIsAnswered(t *testing.T) {
	l := newLone(t, m{}, creating)
	l.rest()
	l.server.change(m{"metadata": m{"annotations": m{kopfPrefix + "request-retry": "1 create"}}})
	l.rest()
	if !l.has("RequestRefused") || l.server.annotations()[kopfPrefix+"requests-handled"] == nil {
		t.Errorf("got %q, %v", l.events, l.server.annotations())
	}
}

func TestOnlyFailuresOfSomeHandlersHoldADeletion(t *testing.T) {
	l := newLone(t, marked, func(r *registry.Registry) {
		fn := handlertest.Function(ignoreChange)
		r.Add(handler.Delete(selector.New("kopfexamples"), fn, handler.ID("holds"), handler.HoldOnFailure()))
		r.Add(handler.Delete(selector.New("kopfexamples"), fn, handler.ID("other")))
	})
	c := l.mustPlan()
	if c.Reason != cause.Delete || !c.NeedsFinalizer || !slices.Equal(c.Cycle.HoldOnFailure, []string{"holds"}) || len(c.Handlers) != 2 {
		t.Errorf("got %s, %q", c.Reason, c.Cycle.HoldOnFailure)
	}
}

// Most changes have no open cycle yet.
func TestDetectionReadsOnlyOpenCycles(t *testing.T) {
	b := &brokenCycle{}
	l := newLone(t, m{}, creating, func(c *Config) {
		c.Settings = c.Settings.WithDefaults()
		b.DiffBase = c.Settings.Persistence.DiffBase
		b.CycleBase = b.DiffBase.(storage.CycleBase)
		c.Settings.Persistence.DiffBase = b
	})
	l.rest()
	l.server.change(m{"spec": m{"size": 1}})
	b.reads = 0
	if c := l.mustPlan(); c.Reason != cause.Update || b.reads != 0 {
		t.Errorf("got %s after %d reads", c.Reason, b.reads)
	}
}

func TestObjectWithoutMatchingHandlersIsNotTouched(t *testing.T) {
	l := newLone(t, m{}, labeled)
	if l.rest(); l.writes != 0 {
		t.Errorf("%d writes", l.writes)
	}
}

// Without handlers of changes, nothing is stored.
func TestTimersNeedNoStorage(t *testing.T) {
	l, base := newLoneWithBase(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Timer(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error { return nil }),
			handler.ID("timer"), handler.Interval(time.Hour)))
	})
	base.err = errBroken
	if c := l.mustPlan(); !slices.Equal(plan.IDsOf(c.Background), []string{"timer"}) {
		t.Errorf("got %q", plan.IDsOf(c.Background))
	}
}

// A deletion has nothing to clean up if no handler could ever be called.
func TestObjectThatFitsNoHandlerNeedsNoFinalizer(t *testing.T) {
	for size, want := range map[any]bool{1: true, "many": false} {
		l := newLone(t, m{"spec": m{"size": size}}, func(r *registry.Registry) {
			fn := handlertest.Function(ignoreChange)
			r.Add(handler.Create(selector.New("kopfexamples"), fn, handler.ID("create"), fits()))
			r.Add(handler.Delete(selector.New("kopfexamples"), fn, handler.ID("delete"), fits()))
		})
		if c := l.mustPlan(); c.NeedsFinalizer != want {
			t.Errorf("size %v: the finalizer is needed: %t", size, c.NeedsFinalizer)
		}
	}
}

// Handlers can tell a new object from one whose former state is empty.
func TestCreationIsAnAddition(t *testing.T) {
	c := newLone(t, m{"spec": m{"size": 1}}, creating).mustPlan()
	if len(c.Diff) != 1 || c.Diff[0].Op != diff.Add || c.Diff[0].Old != nil {
		t.Errorf("got %v", c.Diff)
	}
}

// The failed attempt may have had effects, although the handler is not for the object anymore.
func TestHandlerOfAFieldThatIsTakenBackIsCalledAgain(t *testing.T) {
	l := newLone(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			return handler.Temporary(errBroken, time.Minute)
		}), handler.ID("update"), handler.Field("spec", "size"), handler.Value(handler.Present())))
	})
	l.server.change(m{"spec": m{"size": 1}})
	l.rest()
	l.server.change(m{"spec": m{"size": 2}})
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	l.server.change(m{"spec": m{"size": 1}})
	if c := l.mustPlan(); c.NothingToDo() || len(c.Handlers) != 1 {
		t.Errorf("after the reversal, there is nothing to do: %t; the handlers are %q", c.NothingToDo(), plan.IDsOf(c.Handlers))
	}
	l.server.change(m{"spec": m{"size": nil}})
	if c := l.mustPlan(); c.NothingToDo() {
		t.Errorf("after the removal, the handlers are %q", plan.IDsOf(c.Handlers))
	}
}

// Neither state has the value anymore that the failed attempt was for, and no handler is for the
// object now.
func TestHandlerOfAValueThatIsTakenBackIsCalledAgain(t *testing.T) {
	l := newLone(t, m{"metadata": m{"labels": m{"new": "yes"}}, "spec": m{"size": 1}}, func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error {
			return handler.Temporary(errBroken, time.Minute)
		}), handler.ID("update"), handler.Field("spec", "size"), handler.Value(handler.Equal(int64(2)))))
		r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(ignoreChange), handler.ID("create"), handler.Labels(map[string]handler.Matcher{"new": handler.Equal("yes")})))
	})
	l.rest()
	for _, size := range []int{2, 1} {
		l.server.change(m{"metadata": m{"labels": m{"new": nil}}, "spec": m{"size": size}})
		if _, err := l.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if c := l.mustPlan(); c.NothingToDo() || len(c.Handlers) != 1 {
		t.Errorf("after the reversal, there is nothing to do: %t; the handlers are %q", c.NothingToDo(), plan.IDsOf(c.Handlers))
	}
}

// If an earlier process began the cycle, its resume handlers are called once more afterwards,
// except for those that this process has called in it.
func TestResumeHandlersAreNotCalledAgainAfterThePredecessorsCycle(t *testing.T) {
	fn := handlertest.Function(ignoreChange)
	l := newLone(t, m{}, func(r *registry.Registry) {
		creating(r)
		r.Add(handler.Resume(selector.New("kopfexamples"), fn, handler.ID("resume")))
		r.Add(handler.Update(selector.New("kopfexamples"), fn, handler.ID("update")))
	})
	l.rest()
	l.state().initial.Store(true)
	for _, id := range []string{"resume", "update"} {
		l.state().markFinished(id)
	}
	l.server.change(m{"spec": m{"size": 1}})
	for during, want := range map[bool][]string{true: {"resume", "update"}, false: {"update"}} {
		// The cycle of the predecessor has a record of the handler; a later one has none, also if the
		// predecessor may have called other handlers for it.
		var record any
		if during {
			record = `{"started":"2020-01-01T00:00:00.000000","purpose":"update","retries":1,"success":true,"failure":false}`
		}
		l.server.change(m{"metadata": m{"annotations": m{kopfPrefix + "resume": record}}})
		l.state().handled = false
		l.state().seen = true
		l.state().startedByPredecessor = true
		if c := l.mustPlan(); !slices.Equal(slices.Sorted(slices.Values(plan.IDsOf(c.Handlers))), want) {
			t.Errorf("during the cycle: %t, got %q", during, plan.IDsOf(c.Handlers))
		}
	}
}
