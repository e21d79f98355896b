package write

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestGuard10AnOvertakenRecordStandsAndItsEditIsDropped(t *testing.T) {
	f := newFixture(t, m{})
	c := f.cycle(cause.Create, "a", "b", "c")
	succeed(c, "a", "b")
	f.edit("a", set("ours", "spec", "a"))
	f.edit("b", set("ours", "spec", "b"))
	f.faults = []fault{{before: func() {
		f.change(m{"spec": m{"a": "theirs"}})
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			failed := storage.Record{Started: time.Now(), Purpose: cause.Create, Failure: true, Message: "theirs"}
			return records.Storages.Progress.Store(t.Context(), body, into, "a", &failed)
		})
	}}}
	f.write(Update{Cycle: c})
	f.expect("overtaken record", f.storedRecord("a").Message, "theirs")
	f.expect("overtaken edit", f.field("spec", "a"), "theirs")
	f.expect("other record", f.storedRecord("b").Success, true)
	f.expect("other edit", f.field("spec", "b"), "ours")
	f.expect("finished", f.done, map[string]int{"a": 1, "b": 1})
	f.expect("another instance was seen", f.report.Shared.Has(overlapping), true)
}

func TestGuard11AFinishedCycleStands(t *testing.T) {
	tests := map[string]struct {
		metadata m
		reason   cause.Reason
		finish   func(f *fixture) // what another operator does
	}{
		"another operator has stored the base": {m{}, cause.Create, func(f *fixture) {
			f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
				return records.End(f.t.Context(), &record.Cycle{Reason: cause.Create, New: records.Essence(body, nil), Progress: f.cycle(cause.Create).Progress}, body, into, f.report)
			})
		}},
		"another operator has removed the finalizer": {deleting(ours, theirs), cause.Delete, func(f *fixture) {
			f.change(m{"metadata": m{"finalizers": []any{theirs}}})
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.metadata)
			c := f.cycle(test.reason, "a", "b")
			succeed(c, "a")
			f.edit("a", set("x", "spec", "a"))
			f.edit("event", set("x", "spec", "event"))
			f.faults = []fault{{before: func() { test.finish(f) }}}
			f.write(Update{Cycle: c})
			f.expect("record", f.storedRecord("a") == nil, true)
			f.expect("edit of the cycle", f.field("spec", "a"), nil)
			f.expect("edit of an event handler", f.field("spec", "event"), "x")
			f.expect("finished", f.done, map[string]int{"a": 1, "event": 1})
		})
	}
}

func TestGuard12AnUnansweredEditThatArrivedIsNotRepeated(t *testing.T) {
	for _, part := range []string{"spec", "status"} {
		t.Run(part, func(t *testing.T) {
			f := newFixture(t, m{})
			f.faults = []fault{{lost: errDown}}
			f.edit("a", appendTo(part, "list"))
			_ = f.writeFails(Update{})
			f.sent()
			f.flush()
			f.expectSent("")
			f.expect("list", f.field(part, "list"), []any{"x"})
			f.expect("finished", f.done["a"], 1)
		})
	}
}

func TestGuard13AnUnansweredWriteToTheCurrentVersionMayStillArrive(t *testing.T) {
	for _, part := range []string{"spec", "status"} {
		t.Run(part, func(t *testing.T) {
			f := newFixture(t, m{})
			f.faults = []fault{{late: errDown}, {before: func() { f.late() }}}
			f.edit("a", appendTo(part, "list"))
			_ = f.writeFails(Update{})
			f.flush()
			f.expect("list", f.field(part, "list"), []any{"x"})
			f.expect("finished", f.done["a"], 1)
		})
	}
}

func TestGuard14ARejectedEditFailsItsOwnHandlerOnly(t *testing.T) {
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusForbidden} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = rejecting(code, "spec", "bad")
			c := f.finished(cause.Create, "good", "bad", "late")
			f.edit("good", set("x", "spec", "good"))
			f.edit("bad", set("x", "spec", "bad"))
			f.edit("late", set("x", "spec", "late"))
			outcome := f.write(Update{Cycle: c})
			f.expectSent("PATCH, DRYRUN, DRYRUN, DRYRUN, DRYRUN, DRYRUN, PATCH")
			f.expect("spec", f.field("spec"), m{"size": 1, "good": "x", "late": "x"})
			succeeded, failed := c.Progress.Counts()
			f.expect("counts", []int{succeeded, failed}, []int{2, 1})
			f.expect("unreported successes", c.Unreported, []string{"good", "late"})
			f.expect("ended", outcome.Ended, true)
			f.expect("finished", f.done, map[string]int{"good": 1, "bad": 1, "late": 1})
			if len(f.events) != 1 || !strings.HasPrefix(f.events[0], "WriteRejected: Handler bad failed") {
				t.Errorf("got %q", f.events)
			}
		})
	}
}

func TestGuard15RejectedRecordsBlameNoHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusForbidden, "metadata", "annotations")
	c := f.finished(cause.Create, "a")
	f.edit("a", set("x", "spec", "a"))
	err := f.writeFails(Update{Cycle: c})
	f.expect("error", strings.Contains(err.Error(), "rejects the operator's own records"), true)
	f.expectSent("PATCH, DRYRUN")
	_, failed := c.Progress.Counts()
	f.expect("failed, events, finished", []int{failed, len(f.events), f.done["a"]}, []int{0, 0, 0})

	f.rejects = nil // an administrator has changed the policy
	f.expect("ended", f.flush().Ended, true)
	f.expect("edit", f.field("spec", "a"), "x")
	f.expect("unreported successes", c.Unreported, []string{"a"})
}

func TestGuard16AnEmptyPatchIsNotSent(t *testing.T) {
	tests := map[string]struct {
		edit   func(f *fixture)
		update func(f *fixture) Update
	}{
		"nothing to write":               {func(*fixture) {}, func(*fixture) Update { return Update{} }},
		"the value is there already":     {func(f *fixture) { f.edit("a", set(int64(1), "spec", "size")) }, func(*fixture) Update { return Update{} }},
		"the finalizer is there already": {func(*fixture) {}, func(*fixture) Update { return Update{Decision: plan.Decision{AddFinalizer: true}} }},
		"there are no stale records to remove": {func(*fixture) {}, func(f *fixture) Update {
			return Update{Decision: plan.Decision{StaleRecords: f.cycle(cause.NoOp, "a")}}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{"finalizers": []any{ours}})
			test.edit(f)
			outcome := f.write(test.update(f))
			f.expectSent("")
			f.expect("changed", outcome.Changed, false)
			f.expect("edits", f.state.HasEdits(), false)
		})
	}
}

func TestGuard17AStoppingOperatorDoesNotEndACycleThatOthersHaveChanged(t *testing.T) {
	tests := map[string]struct {
		stopping, changed, ends bool
	}{
		"stopping, with a change":    {true, true, false},
		"stopping, without a change": {true, false, true},
		"running, with a change":     {false, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			if test.changed {
				f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
			}
			outcome := f.write(Update{Cycle: f.finished(cause.Create, "a"), Stopping: test.stopping})
			f.expect("ended", outcome.Ended, test.ends)
			f.expect("base is stored", f.storedBase() != nil, test.ends)
			f.expect("record is kept", f.storedRecord("a") != nil, !test.ends)
		})
	}
}

func TestGuard18TheFinalizerStaysForDaemonsAndFailures(t *testing.T) {
	tests := map[string]struct {
		change func(c *record.Cycle, d *plan.Decision)
		stays  bool
	}{
		"all handlers have succeeded": {func(*record.Cycle, *plan.Decision) {}, false},
		"a daemon runs":               {func(_ *record.Cycle, d *plan.Decision) { d.DaemonsRunning = true }, true},
		"a handler failed":            {func(c *record.Cycle, _ *plan.Decision) { c.FailHandler("a", errDown) }, false},
		"a handler failed, and holds the object": {func(c *record.Cycle, _ *plan.Decision) {
			c.HoldOnFailure = []string{"a"}
			c.FailHandler("a", errDown)
		}, true},
		"a handler has not finished": {func(c *record.Cycle, _ *plan.Decision) { c.Progress.Include("b", cause.Delete, false) }, true},
		"a handler cannot be called": {func(c *record.Cycle, _ *plan.Decision) { c.Progress.SetMisfit("b", errDown) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, deleting(ours))
			c, d := f.finished(cause.Delete, "a"), plan.Decision{RemoveFinalizer: true}
			test.change(c, &d)
			outcome := f.write(Update{Cycle: c, Decision: d})
			f.expect("gone", outcome.Gone, !test.stays)
			f.expect("object exists", f.object != nil, test.stays)
			if test.stays {
				f.expect("finalizers", f.field("metadata", "finalizers"), []any{ours})
				f.expect("record is kept", f.storedRecord("a") != nil, true)
			}
		})
	}
}

func TestGuard19DecisionsAreMadeAgainOnEveryVersion(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.faults = []fault{{before: func() { f.change(m{"metadata": m{"labels": m{"matches": "yes"}}}) }}}
	var asked []string
	update := Update{
		Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true},
		Decide: func(_ context.Context, body *object.Body) (plan.Decision, error) {
			asked = append(asked, body.ResourceVersion())
			// Another deletion handler is for the object by now.
			return plan.Decision{RemoveFinalizer: body.Labels()["matches"] == ""}, nil
		},
	}
	outcome := f.write(update)
	f.expect("versions decided on", asked, []string{"8"})
	f.expect("gone, ended", []bool{outcome.Gone, outcome.Ended}, []bool{false, false})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{ours})
	f.expect("record is kept", f.storedRecord("a").Success, true)
}

func TestGuard19DecisionsAreMadeAgainInALaterPass(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.faults = []fault{{err: errDown}}
	decision := plan.Decision{RemoveFinalizer: true}
	decide := func(context.Context, *object.Body) (plan.Decision, error) { return decision, nil }
	_ = f.writeFails(Update{Cycle: f.finished(cause.Delete, "a"), Decision: decision, Decide: decide})
	decision = plan.Decision{RemoveFinalizer: true, DaemonsRunning: true}
	f.expect("ended", f.flush().Ended, false)
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{ours})
	f.expect("record is kept", f.storedRecord("a").Success, true)
}

// A cycle whose handlers cannot be called yet has not begun.
func TestNothingIsWrittenForHandlersThatCannotBeCalled(t *testing.T) {
	f := newFixture(t, m{})
	c := f.cycle(cause.Create)
	c.Progress.SetMisfit("a", errDown)
	outcome := f.write(Update{Cycle: c})
	f.expectSent("")
	f.expect("ended", outcome.Ended, false)
}

func TestAnnotationsAreSetByTheSameWrite(t *testing.T) {
	honored := plan.Decision{Annotations: map[string]string{"example.com/honored": "1"}}
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a")
	f.write(Update{Cycle: c, Decision: honored})
	f.expectSent("PATCH")
	f.expect("annotation", f.field("metadata", "annotations", "example.com/honored"), "1")
	f.expect("base is stored", f.storedBase() != nil, true)
	f.write(Update{Decision: honored})
	f.expectSent("") // not again

	f = newFixture(t, deleting(ours))
	honored.RemoveFinalizer = true
	f.write(Update{Cycle: f.finished(cause.Delete, "a"), Decision: honored})
	f.expect("gone", f.state.Gone(), true)
}

// Records of a cycle that no longer exists would stay on the object forever.
func TestStaleRecordsAreRemoved(t *testing.T) {
	f := newFixture(t, m{})
	f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
		return records.Storages.Progress.Store(t.Context(), body, into, "a", &storage.Record{Started: time.Now(), Purpose: cause.Update})
	})
	f.refresh(f.cached())
	f.write(Update{Decision: plan.Decision{StaleRecords: f.cycle(cause.NoOp, "a")}})
	f.expectSent("PATCH")
	f.expect("record", f.storedRecord("a") == nil, true)
}
