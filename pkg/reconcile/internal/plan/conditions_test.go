package plan

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func never(string) bool { return false }

func always(string) bool { return true }

// after returns an object of the first generation with the status for an outcome.
func after(o outcome) m {
	body := m{"metadata": m{"generation": int64(1)}}
	o.Generation = 1
	return patch.ApplyMerge(body, o.amend(body, body, noon))
}

// grown returns the object with another generation.
func grown(body m, generation int64) m {
	return patch.ApplyMerge(body, m{"metadata": m{"generation": generation}})
}

var (
	done   = outcome{IsOver: never, Called: true}
	open   = outcome{IsOver: never, Called: true, Unfinished: true}
	failed = outcome{IsOver: never, Called: true, Failed: map[string]string{"fn": "bro\nken"}}
	misfit = outcome{IsOver: never, Called: true, Misfits: []string{"Handler fn cannot be called: no number."}}
	waits  = outcome{IsOver: never, Called: true, Unready: []string{"Deployment.apps ns/web"}}

	failing = outcome{IsOver: never, Called: true, Failing: []string{"fn"}, Unready: waits.Unready}
	broken  = outcome{IsOver: never, Called: true, Broken: []string{"Deployment.apps ns/web"}, Unready: []string{"Job.batch ns/web"}}
	spared  = outcome{IsOver: never, Applies: func() bool { return false }}
	unasked = outcome{IsOver: never, Applies: func() bool { return true }}
	retries = outcome{IsOver: never, Called: true, Unfinished: true, Broken: broken.Broken}
)

func summary(body m) string {
	status, _ := body["status"].(m)
	text := fmt.Sprint(status["observedGeneration"])
	for _, item := range condition.Of(body) {
		c, _ := item.(m)
		text += fmt.Sprintf(" %s=%s(%s)@%v", c["type"], c["status"], c["reason"], c["observedGeneration"])
	}
	return text
}

func TestAmend(t *testing.T) {
	tests := map[string]struct {
		before  m
		outcome outcome
		want    string
	}{
		"a new object":                               {m{"metadata": m{"generation": int64(1)}}, done, "1 Ready=True(Reconciled)@1"},
		"children are not ready":                     {m{"metadata": m{"generation": int64(1)}}, waits, "1 Ready=False(ChildrenNotReady)@1 Reconciling=True(ChildrenNotReady)@1"},
		"children are ready again":                   {after(waits), done, "1 Ready=True(Reconciled)@1"},
		"children are not ready anymore":             {after(done), waits, "1 Ready=False(ChildrenNotReady)@1 Reconciling=True(ChildrenNotReady)@1"},
		"a new object with the default":              {m{"metadata": m{"generation": int64(1)}, "status": m{"observedGeneration": int64(-1)}}, open, "-1"},
		"a new object without the default":           {m{"metadata": m{"generation": int64(1)}}, open, "1 Ready=False(HandlersRunning)@1 Reconciling=True(HandlersRunning)@1"},
		"a new object that concerns no handler":      {m{"metadata": m{"generation": int64(1)}}, spared, "1 Ready=True(NoHandlerApplies)@1"},
		"an object that was handled unconditionally": {m{"metadata": m{"generation": int64(1)}}, unasked, "1 Ready=True(Reconciled)@1"},
		"a change concerns no handler":               {grown(after(done), 2), spared, "2 Ready=True(Reconciled)@2"},
		"no change has concerned a handler":          {grown(after(spared), 2), spared, "2 Ready=True(NoHandlerApplies)@2"},
		"a later operator has handlers":              {after(spared), unasked, "1 Ready=True(NoHandlerApplies)@1"},
		"a handler is called for the first time":     {after(spared), done, "1 Ready=True(Reconciled)@1"},
		"a failed handler is not declared anymore":   {after(failed), outcome{IsOver: always, Applies: spared.Applies}, "1 Ready=True(NoHandlerApplies)@1"},
		"a change is handled":                        {grown(after(done), 2), done, "2 Ready=True(Reconciled)@2"},
		"a change is being handled":                  {grown(after(done), 2), open, "1 Ready=True(Reconciled)@1"},
		"a change without a generation is handled":   {after(done), open, "1 Ready=False(HandlersRunning)@1 Reconciling=True(HandlersRunning)@1"},
		"handlers succeed after a retry":             {after(open), done, "1 Ready=True(Reconciled)@1"},
		"a handler has failed":                       {after(open), failed, "1 Ready=False(HandlersFailed)@1 Stalled=True(HandlersFailed)@1"},
		"a former failure counts":                    {grown(after(failed), 2), done, "2 Ready=False(HandlersFailed)@2 Stalled=True(HandlersFailed)@2"},
		"a former failure counts while others retry": {after(failed), open, "1 Ready=False(HandlersFailed)@1 Stalled=True(HandlersFailed)@1"},
		"a former failure is over":                   {after(failed), outcome{IsOver: always, Called: true}, "1 Ready=True(Reconciled)@1"},
		"a failed handler is called again":           {after(failed), outcome{IsOver: always, Called: true, Unfinished: true}, "1 Ready=False(HandlersRunning)@1 Reconciling=True(HandlersRunning)@1"},
		"a deletion is held":                         {grown(after(done), 2), outcome{IsOver: never, Called: true, Held: true, Failed: failed.Failed}, "2 Ready=False(DeletionHeld)@2 Stalled=True(DeletionHeld)@2"},
		"an object does not fit":                     {grown(after(done), 2), misfit, "2 Ready=False(ObjectMisfit)@2 Stalled=True(ObjectMisfit)@2"},
		"a change during the handling":               {grown(after(done), 3), outcome{IsOver: never, Called: true, Generation: 2, Continues: true}, "1 Ready=True(Reconciled)@1"},
		"a change during the handling that failed":   {grown(after(done), 3), outcome{IsOver: never, Called: true, Generation: 2, Continues: true, Failed: failed.Failed}, "2 Ready=False(HandlersFailed)@2 Stalled=True(HandlersFailed)@2"},
		"children cannot be restored":                {after(done), failing, "1 Ready=False(ChildrenNotRestored)@1 Reconciling=True(ChildrenNotRestored)@1"},
		"children cannot be restored after a change": {grown(after(done), 2), failing, "1 Ready=True(Reconciled)@1"},
		"children are restored":                      {after(failing), done, "1 Ready=True(Reconciled)@1"},
		"children cannot be restored, a misfit":      {after(done), outcome{IsOver: never, Called: true, Failing: failing.Failing, Misfits: misfit.Misfits}, "1 Ready=False(ObjectMisfit)@1 Stalled=True(ObjectMisfit)@1"},
		"children have failed":                       {after(done), broken, "1 Ready=False(ChildrenFailed)@1 Stalled=True(ChildrenFailed)@1"},
		"children have failed, which is retried":     {grown(after(done), 2), retries, "2 Ready=False(ChildrenFailed)@2 Stalled=True(ChildrenFailed)@2"},
		"children have failed during the handling":   {after(done), outcome{IsOver: never, Called: true, Broken: broken.Broken, Continues: true}, "1 Ready=True(Reconciled)@1"},
		"children recover":                           {after(broken), waits, "1 Ready=False(ChildrenNotReady)@1 Reconciling=True(ChildrenNotReady)@1"},
		"an object fits again":                       {grown(after(misfit), 2), done, "2 Ready=True(Reconciled)@2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			generation, _ := test.before["metadata"].(m)["generation"].(int64)
			if test.outcome.Generation == 0 {
				test.outcome.Generation = generation
			}
			now := patch.ApplyMerge(test.before, test.outcome.amend(test.before, test.before, noon))
			if got := summary(now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if again := test.outcome.amend(now, now, noon.Add(time.Hour)); again != nil {
				t.Errorf("it is written again: %v", again)
			}
		})
	}
}

func TestOtherConditionsStay(t *testing.T) {
	own := m{"type": "Connected", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	before := after(open)
	edited := patch.ApplyMerge(before, m{"status": m{"conditions": []any{own, m{"type": "Ready", "status": "Unknown"}}}})
	now := patch.ApplyMerge(edited, outcome{IsOver: never, Called: true, Generation: 1}.amend(before, edited, noon))
	if got := summary(now); got != "1 Connected=True(%!s(<nil>))@<nil> Ready=True(Reconciled)@1" {
		t.Errorf("got %s", got)
	}
}

func TestFailuresSurviveHandlersThatReplaceTheConditions(t *testing.T) {
	before := after(failed)
	edited := patch.ApplyMerge(before, m{"status": m{"conditions": []any{}}})
	now := patch.ApplyMerge(edited, outcome{IsOver: never, Called: true, Generation: 1}.amend(before, edited, noon))
	if message := condition.Of(now).Get("Stalled")["message"]; message != "Handler fn failed permanently: bro ken" {
		t.Errorf("got %v", message)
	}
}

func TestTheTimeOfATransitionIsThatOfTheStatus(t *testing.T) {
	before := after(done)
	now := patch.ApplyMerge(grown(before, 2), outcome{IsOver: never, Called: true, Generation: 2}.amend(grown(before, 2), grown(before, 2), noon.Add(time.Hour)))
	if got := condition.Of(now).Get("Ready")["lastTransitionTime"]; got != "2026-11-23T12:00:00Z" {
		t.Errorf("got %v", got)
	}
}

func TestFailuresAreReadAsTheyWereWritten(t *testing.T) {
	many := failures{"a": "x: Handler b failed permanently: y", "c/item1.x": "", "long": strings.Repeat("ä", maxMessage)}
	read := outcome{IsOver: never, Called: true}.failures(condition.Of(after(outcome{IsOver: never, Called: true, Failed: many})))
	if len(read) != 3 || read["a"] != many["a"] || len(read["long"]) > maxMessage+3 {
		t.Errorf("got %q", read)
	}
	again := outcome{IsOver: never, Called: true}.failures(condition.Of(after(outcome{IsOver: never, Called: true, Failed: read})))
	if !reflect.DeepEqual(read, again) {
		t.Errorf("got %q, then %q", read, again)
	}
	for i := range 2 * maxFailures {
		many[fmt.Sprint("fn", i)] = strings.Repeat("x", 2*maxMessage)
	}
	if size := len(strings.Join(many.lines(), "\n")); size > 32768 {
		t.Errorf("got %d bytes", size)
	}
}

func TestFewChildrenAreNamed(t *testing.T) {
	tests := map[string][]string{
		"a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b, c, and 2 more": {"a", "b", "c", "d", "e"},
	}
	for want, names := range tests {
		for prefix, o := range map[string]outcome{
			"These children are not ready yet: ": {IsOver: never, Unready: names},
			"These children have failed: ":       {IsOver: never, Broken: names},
			"These handlers fail to restore children that others have changed, and are called again: ": {IsOver: never, Failing: names},
		} {
			if got := condition.Of(after(o)).Get("Ready")["message"]; got != prefix+want+"." {
				t.Errorf("got %q, want %q", got, prefix+want)
			}
		}
	}
}

// The outcome is that of the cycle, of the calls that belong to none, and of the children.
func TestConditionsFollowFromTheOutcomeOfTheHandlers(t *testing.T) {
	stored := map[string]*storage.Record{"restored": {Retries: 1}}
	restoring := &handler.Declaration{ID: "restored", Kind: handler.OnRestore}
	calls := func(end func(s *call.State)) *record.Calls {
		c := &record.Calls{Handlers: registry.Handlers{restoring}, Progress: call.NewProgress(func(string) *storage.Record { return nil })}
		end(c.Progress.Include("restored", cause.Reason(handler.OnRestore), true))
		c.Records = func() map[string]*storage.Record { return stored }
		return c
	}
	misfit := &handler.MisfitError{Type: "*v1.Pod", Err: errors.New("no number")}
	before := func(id string) m {
		return after(outcome{IsOver: never, Called: true, Failed: map[string]string{id: "broken"}})
	}
	tests := map[string]struct {
		body    m // the object as it is stored
		prepare func(p *Plan, fn *call.State, c *Circumstances)
		want    any
	}{
		"a handler has succeeded":    {nil, func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Success = true }, "Reconciled"},
		"a handler has failed":       {nil, func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Failure = true }, "HandlersFailed"},
		"a handler is retried":       {nil, func(*Plan, *call.State, *Circumstances) {}, "HandlersRunning"},
		"a handler cannot be called": {nil, func(p *Plan, _ *call.State, _ *Circumstances) { p.Cycle.Progress.SetMisfit("fn", misfit) }, "ObjectMisfit"},
		"a handler is skipped": {nil, func(p *Plan, fn *call.State, _ *Circumstances) {
			fn.Success = true
			p.Misfits = []Misfit{{p.Handlers[0], misfit, false}}
		}, "Reconciled"},
		"a child is not ready":              {nil, func(_ *Plan, fn *call.State, c *Circumstances) { fn.Success = true; c.Children.Unready = []string{"a"} }, "ChildrenNotReady"},
		"a child has failed":                {nil, func(_ *Plan, fn *call.State, c *Circumstances) { fn.Success = true; c.Children.Broken = []string{"a"} }, "ChildrenFailed"},
		"nothing has happened":              {nil, func(p *Plan, _ *call.State, _ *Circumstances) { p.Reason = cause.NoOp }, "NoHandlerApplies"},
		"nothing has happened, and daemons": {nil, func(p *Plan, _ *call.State, _ *Circumstances) { p.Reason = cause.NoOp; p.Background = p.Handlers }, "Reconciled"},
		"only the change is recorded":       {nil, func(p *Plan, fn *call.State, _ *Circumstances) { fn.Success = true; p.Handlers = nil }, "NoHandlerApplies"},
		"another generation is there":       {m{"metadata": m{"generation": int64(2)}}, func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Success = true }, nil},
		"a deletion goes on":                {nil, func(p *Plan, _ *call.State, _ *Circumstances) { p.Deleting = true }, nil},
		"a deletion is held by a failure": {nil, func(p *Plan, fn *call.State, _ *Circumstances) {
			p.Deleting = true
			p.Cycle.HoldOnFailure = []string{"fn"}
			fn.Failure = true
		}, "DeletionHeld"},
		"a deletion is held by a misfit": {nil, func(p *Plan, _ *call.State, _ *Circumstances) {
			p.Deleting = true
			p.Cycle.Progress.SetMisfit("fn", misfit)
		}, "ObjectMisfit"},
		"children are restored": {nil, func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Calls = calls(func(s *call.State) { s.Success = true })
		}, "Reconciled"},
		"children cannot be restored": {nil, func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Calls = calls(func(s *call.State) { s.Failure = true })
		}, "HandlersFailed"},
		"children are not restored yet": {nil, func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Calls = calls(func(*call.State) {})
		}, "ChildrenNotRestored"},
		"both fail": {nil, func(_ *Plan, fn *call.State, c *Circumstances) {
			fn.Failure = true
			c.Calls = calls(func(s *call.State) { s.Failure = true })
		}, "HandlersFailed"},
		"a former failure is retried":      {before("fn"), func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Success = true }, "Reconciled"},
		"a former failure is not retried":  {before("fn"), func(p *Plan, _ *call.State, _ *Circumstances) { p.Reason = cause.NoOp }, "HandlersFailed"},
		"a former failure of another":      {before("other"), func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Success = true }, "HandlersFailed"},
		"a former failure is not declared": {before("gone"), func(_ *Plan, fn *call.State, _ *Circumstances) { fn.Success = true }, "Reconciled"},
		"children are restored at last": {before("restored"), func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Calls = calls(func(s *call.State) { s.Success = true })
		}, "Reconciled"},
		"a failure that would hold a deletion": {nil, func(p *Plan, fn *call.State, _ *Circumstances) {
			p.Cycle.HoldOnFailure = []string{"fn"}
			fn.Failure = true
		}, "HandlersFailed"},
		"daemons run, and only the change is recorded": {nil, func(p *Plan, fn *call.State, _ *Circumstances) {
			fn.Success = true
			p.Background = p.Handlers
			p.Handlers = nil
		}, "Reconciled"},
		"nothing has happened since a creation": {nil, func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Handlers.Changing = registry.Handlers{{ID: "fn", Kind: handler.OnCreate}}
		}, "Reconciled"},
		"no children have to be restored": {nil, func(p *Plan, _ *call.State, c *Circumstances) {
			p.Reason = cause.NoOp
			c.Calls = calls(func(*call.State) {})
			c.Calls.Records = func() map[string]*storage.Record { return nil }
		}, "NoHandlerApplies"},
		"the status has no conditions":    {nil, func(_ *Plan, _ *call.State, c *Circumstances) { c.Handlers.HasConditions = false }, nil},
		"another operator is responsible": {nil, func(p *Plan, _ *call.State, _ *Circumstances) { p.InScope = false }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			first := m{"metadata": m{"generation": int64(1)}}
			p := &Plan{InScope: true, Handlers: registry.Handlers{{ID: "fn"}}, Cycle: &record.Cycle{Progress: call.NewProgress(func(string) *storage.Record { return nil })}}
			p.Reason = cause.Update
			p.CallContext.Body = object.NewBody(first)
			c := Circumstances{Handlers: &Handlers{HasConditions: true, IDs: []string{"fn", "other", "restored"}, Triggered: registry.Handlers{restoring}}}
			test.prepare(p, p.Cycle.Progress.Include("fn", cause.Update, false), &c)
			body := test.body
			if body == nil {
				body = first
			}
			var said any
			if decided := p.conditions(c); decided != nil {
				said = condition.Of(patch.ApplyMerge(body, decided.Amend(body, body, false))).Get(condition.Ready)["reason"]
			}
			if said != test.want {
				t.Errorf("got %v, want %v", said, test.want)
			}
		})
	}
}

func TestConditionsAreAboutTheGenerationThatHandlersHaveSeen(t *testing.T) {
	first := m{"metadata": m{"generation": int64(1)}}
	second := grown(first, 2)
	tests := map[string]struct {
		now       m
		fails     bool
		continues bool
		want      string
	}{
		"they have succeeded":                        {first, false, false, "1 Ready=True(Reconciled)@1"},
		"the pass continues":                         {first, false, true, "<nil>"},
		"the object has changed":                     {second, false, false, "<nil>"},
		"they have failed, and the pass continues":   {first, true, true, "1 Ready=False(HandlersFailed)@1 Stalled=True(HandlersFailed)@1"},
		"they have failed before the object changed": {second, true, false, "1 Ready=False(HandlersFailed)@1 Stalled=True(HandlersFailed)@1"},
	}
	for name, test := range tests {
		p := &Plan{InScope: true, Handlers: registry.Handlers{{ID: "fn"}}, Cycle: &record.Cycle{Progress: call.NewProgress(func(string) *storage.Record { return nil })}}
		p.Reason = cause.Update
		p.CallContext.Body = object.NewBody(first)
		fn := p.Cycle.Progress.Include("fn", cause.Update, false)
		fn.Success = !test.fails
		fn.Failure = test.fails
		decided := p.conditions(Circumstances{Handlers: &Handlers{HasConditions: true, IDs: []string{"fn"}}})
		if got := summary(patch.ApplyMerge(test.now, decided.Amend(test.now, test.now, test.continues))); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// One handler has failed in the cycle, and another one could not restore its children.
func TestFailuresInTheCycleAndOutsideOfItCount(t *testing.T) {
	progress := call.NewProgress(func(string) *storage.Record { return nil })
	progress.Fail("restored", errUnfit)
	c := Conditions{
		handlers: &Handlers{Triggered: registry.Handlers{{ID: "restored", Kind: handler.OnRestore}}},
		calls:    &record.Calls{Progress: progress, Records: func() map[string]*storage.Record { return nil }},
	}
	o := outcome{Failed: map[string]string{"fn": "broken"}}
	if restored := c.addRestorations(&o); len(restored) > 0 || len(o.Failed) != 2 || o.Failed["fn"] != "broken" {
		t.Errorf("got %q, %q", restored, o.Failed)
	}
}

func TestMessagesOfTheGreatestLengthStayWhole(t *testing.T) {
	whole := strings.Repeat("x", maxMessage)
	if got := clean(whole); got != whole {
		t.Errorf("got %q", got)
	}
	if got := clean(whole + "x"); got != whole+"…" {
		t.Errorf("got %q", got)
	}
}
