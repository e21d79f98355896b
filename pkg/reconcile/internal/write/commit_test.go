package write

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestFlushWithoutAnUpdateDoesNothing(t *testing.T) {
	f := newFixture(t, m{})
	f.edit("a", set("x", "spec", "a")) // waits for the update of this pass
	f.expect("outcome", f.flush() == Outcome{}, true)
	f.expectSent("")
	f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.sent()
	f.expect("outcome after a write", f.flush() == Outcome{}, true)
	f.expectSent("")
}

func TestOutcomeOfAWrite(t *testing.T) {
	f := newFixture(t, m{})
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	outcome := f.write(Update{Cycle: c})
	f.expect("outcome", outcome == Outcome{Cycle: c, Changed: true}, true)
	f.expect("records that are not stored", c.Progress.Dirty(), []string{})
	f.expect("update that waits", f.state.pending == nil, true)
}

func TestOutcomeOfAnObjectThatIsGone(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{err: answer(http.StatusNotFound), before: func() { f.object = nil }}}
	f.expect("outcome", f.write(Update{Cycle: f.finished(cause.Create, "a")}) == Outcome{Gone: true}, true)
}

// A write in the middle of a pass has no answer, and the pass ends. What else it must write is kept, and
// the edit that has arrived is not repeated.
func TestAKeptUpdateIsWrittenByTheNextPass(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a")
	f.edit("event", appendTo("spec", "list"))
	f.faults, f.readErr = []fault{{lost: errDown}}, errDown
	_ = f.writeFails(Update{Decision: plan.Decision{AddFinalizer: true}})
	f.edit("a", set("x", "spec", "a"))
	f.state.Keep(Update{Cycle: c})
	f.expect("edits", f.state.HasEdits(), true)

	f.readErr = nil
	f.expect("ended", f.flush().Ended, true)
	f.expect("list", f.field("spec", "list"), []any{"x"})
	f.expect("edit", f.field("spec", "a"), "x")
	f.expect("finished", f.done, map[string]int{"event": 1, "a": 1})
}

func TestAnUpdateIsKeptAlthoughNothingWaits(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Keep(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("ended", f.flush().Ended, true)
}

func TestAnUpdateTakesThePlaceOfTheOneThatWaits(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Keep(Update{Cycle: f.finished(cause.Create, "a")})
	f.write(Update{})
	f.expect("pending", f.state.HasPending(), false)
}

func TestNothingIsKeptForAnObjectThatIsGone(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a")
	f.state.MarkGone()
	f.state.Keep(Update{Cycle: c})
	f.expect("pending", f.state.HasPending(), false)
}

// All changes by others count until detection looks at the object again: also those that an
// earlier write of the same pass has met.
func TestAllWritesOfAPassRespectChangesByOthers(t *testing.T) {
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "a")
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
	f.write(Update{Decision: plan.Decision{AddFinalizer: true}})
	f.expect("ended", f.write(Update{Cycle: c, Stopping: true}).Ended, false)

	f.StartDetection()
	outcome := f.write(Update{Cycle: f.finished(cause.Create, "a"), Stopping: true})
	f.expect("ended, by others", []bool{outcome.Ended, outcome.ChangedByOthers}, []bool{true, false})
}

// The object stays for the sake of others, but is not ours anymore.
func TestEditsOfAReleasedObjectAreDropped(t *testing.T) {
	f := newFixture(t, deleting(theirs))
	f.edit("a", set("x", "spec", "a"))
	outcome := f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("")
	f.expect("changed by others, edits", []any{outcome.ChangedByOthers, f.state.HasEdits()}, []any{true, false})
}

func TestAWriteGivesUpAfterSomeConflicts(t *testing.T) {
	f := newFixture(t, m{})
	for range maxTries {
		f.faults = append(f.faults, fault{before: func() { f.change(m{"spec": m{"size": int64(f.version)}}) }})
	}
	f.edit("a", set("x", "spec", "a"))
	err := f.writeFails(Update{})
	f.expect("error", strings.Contains(err.Error(), "all 6 attempts to write it have failed"), true)
	f.expect("requests", len(f.sent()), 2*maxTries)
	f.flush()
	f.expect("edit", f.field("spec", "a"), "x")
}

func TestAllFailuresOfAnUnansweredWriteAreReported(t *testing.T) {
	for name, object := range map[string]m{"the object is there": {}, "the object is deleted": nil} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.faults = []fault{{err: errDown}}
			f.readErr = errStorage
			if object == nil {
				f.faults[0].before, f.readErr = func() { f.object = nil }, nil
			}
			f.edit("a", set("x", "spec", "a"))
			_, err := f.Write(t.Context(), Update{})
			if object == nil {
				f.expect("gone, finished", []any{err, f.state.Gone(), f.done["a"]}, []any{nil, true, 1})
			} else if !errors.Is(err, errDown) || !errors.Is(err, errStorage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Nothing was written, so the watch shows all that there is to know.
func TestAConflictNeedsNoPermissionToRead(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}); f.readErr = noPermission() }}}
	f.edit("a", appendTo("spec", "list"))
	err := f.writeFails(Update{})
	f.expect("forbidden", apierrors.IsForbidden(err), true)
	f.expectSent("PATCH, GET")
	f.flush()
	f.expectSent("PATCH")
	f.expect("list", f.field("spec", "list"), []any{"x"})
}

func TestAReadThatFailsAfterAConflictEndsThePass(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}); f.readErr = errDown }}}
	f.edit("a", appendTo("spec", "list"))
	if err := f.writeFails(Update{}); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
	f.expectSent("PATCH, GET")
	f.readErr = nil
	f.flush()
	f.expectSent("GET, PATCH")
	f.expect("list", f.field("spec", "list"), []any{"x"})
}

// The status is written first. After a conflict of the rest, it may belong to others.
func TestConflictAfterTheStatusDoesNotRepeatIt(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{}, {before: func() { f.change(m{"status": m{"phase": "theirs"}}) }}}
	f.edit("a", func(p *patch.Patch) { set("x", "status", "phase")(p); set("x", "spec", "a")(p) })
	f.write(Update{})
	f.expectSent("PATCH status, PATCH, GET, PATCH")
	f.expect("phase, a", []any{f.field("status", "phase"), f.field("spec", "a")}, []any{"theirs", "x"})
}

func TestConflictOfAStatusThatIsNoSubresourceRepeatsIt(t *testing.T) {
	f := newFixture(t, m{})
	f.server.statusSubresource, f.target.StatusSubresource = false, false
	f.faults = []fault{{before: func() { f.change(m{"status": m{"phase": "theirs"}}) }}}
	f.edit("a", set("x", "status", "phase"))
	f.write(Update{})
	f.expect("phase", f.field("status", "phase"), "x")
}

// A conflict was not committed, even if the object looks as if it was.
func TestAConflictIsNotTakenForAWriteThatArrived(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"list": []any{"x"}}}) }}}
	f.edit("a", appendTo("spec", "list"))
	f.write(Update{})
	f.expect("list", f.field("spec", "list"), []any{"x", "x"})
}

// Neither was a write that was given up before another one has changed the version.
func TestAnOutdatedWriteIsNotTakenForOneThatArrived(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{err: errDown}, {}, {before: func() { f.change(m{"spec": m{"list": []any{"x"}}}) }}}
	f.edit("a", appendTo("spec", "list"))
	_ = f.writeFails(Update{})
	f.edit("b", set("x", "status", "phase"))
	f.flush()
	f.expectSent("PATCH, GET, PATCH status, PATCH, GET, PATCH")
	f.expect("list", f.field("spec", "list"), []any{"x", "x"})
}

func TestTheRestOfAnEditIsWrittenAfterTheResponseOfItsStatusIsLost(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{lost: errDown}}
	f.edit("a", func(p *patch.Patch) { appendTo("status", "list")(p); set("x", "spec", "a")(p) })
	_ = f.writeFails(Update{})
	f.expect("finished", f.done["a"], 0)
	f.flush()
	f.expectSent("PATCH status, GET, PATCH")
	f.expect("list, a", []any{f.field("status", "list"), f.field("spec", "a")}, []any{[]any{"x"}, "x"})
}

// The edits of a deletion that was not answered are not lost if others keep the object.
func TestEditsAreWrittenWhenAnUnansweredDeletionIsPutOff(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.faults = []fault{{err: errDown}}
	f.edit("a", set("x", "spec", "a"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.change(m{"metadata": deleting(ours, theirs)})
	f.flush()
	f.expect("edit", f.field("spec", "a"), "x")
}

// A response that the object does not exist can come from a proxy. Behind it, the write may
// have arrived.
func TestAWriteIsUncertainAfterTheResponseOfAProxy(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{lost: page()}}
	cached := f.cached()
	f.edit("a", appendTo("spec", "list"))
	_ = f.writeFails(Update{})
	f.refresh(cached)
	f.expectSent("PATCH, GET")
}

// Nothing was written, so there is nothing to find out.
func TestARejectedWriteIsCertain(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = rejecting(http.StatusForbidden, "metadata", "annotations")
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.sent()
	f.refresh(f.cached())
	f.expectSent("")
}

func TestAnEditThatIsNotJSONIsNotSent(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Add(call.Edit{ID: "a", Patch: &patch.Patch{}, Result: make(chan int)})
	_ = f.writeFails(Update{})
	f.expectSent("GET")
}

func TestPrunedStatusOfASubresourceIsReported(t *testing.T) {
	f := newFixture(t, m{})
	f.prunesStatus = true
	f.edit("a", set("x", "status", "phase"))
	f.write(Update{})
	if len(f.events) != 1 || !strings.HasPrefix(f.events[0], "PrunedFields: ") {
		t.Errorf("got %q", f.events)
	}
}

// The operator finds its own record, and not that of another instance.
func TestARecordWhoseAnswerWasLostIsNotThatOfOthers(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{lost: errDown}}
	f.edit("a", set("x", "spec", "a"))
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	_ = f.writeFails(Update{Cycle: c})
	f.nextPass()
	f.refresh(f.cached())
	f.flush()
	f.expect("edit, finished", []any{f.field("spec", "a"), f.done["a"]}, []any{"x", 1})
	f.expect("another instance was seen", f.report.Shared.Has(overlapping), false)
}

// What is not stored is not reported as stored.
func TestHashesAreReportedWhenTheyAreStored(t *testing.T) {
	f := newFixture(t, m{})
	f.change(m{"kind": "Secret", "apiVersion": "v1", "data": m{"key": "c2VjcmV0"}})
	f.nextPass()
	f.refresh(f.cached())
	f.faults = []fault{{err: answer(http.StatusForbidden)}}
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("reported", f.report.Object.Has("hashed"), false)
	f.nextPass()
	f.refresh(f.cached())
	f.flush()
	f.expect("reported", f.report.Object.Has("hashed"), true)
}

// The state of the first attempt would be stored as hashes; then another operator ends the cycle.
func TestHashesThatAreNotStoredAreNotReported(t *testing.T) {
	f := newFixture(t, m{})
	f.change(m{"kind": "Secret", "apiVersion": "v1", "data": m{"key": "c2VjcmV0"}})
	f.nextPass()
	f.refresh(f.cached())
	f.faults = []fault{{before: func() {
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			ended := &record.Cycle{Reason: cause.Create, New: records.Essence(body, nil), Progress: f.cycle(cause.Create).Progress}
			return records.End(t.Context(), ended, body, into, f.reporter())
		})
	}}}
	f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("reported", f.report.Object.Has("hashed"), false)
}
