package write

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The status of an object that is about to be deleted is not written. It must be when
// another client keeps the object meanwhile.
func TestStatusIsWrittenWhenADeletionIsPutOff(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.faults = []fault{{before: func() { f.change(m{"metadata": deleting(ours, theirs)}) }}}
	f.edit("a", set("x", "status", "phase"))
	f.write(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.expectSent("PATCH, GET, PATCH status, PATCH")
	f.expect("phase", f.field("status", "phase"), "x")
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs})
}

// Records in the status are written last: a conflict there must not repeat the edits.
func TestConflictOfTheRecordsDoesNotRepeatTheEdits(t *testing.T) {
	f := newFixture(t, m{})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	f.faults = []fault{{}, {before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
	f.edit("a", appendTo("spec", "list"))
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c})
	f.expect("list", f.field("spec", "list"), []any{"x"})
	f.expect("record", f.storedRecord("a").Success, true)
	f.expect("finished", f.done["a"], 1)
}

// The end of a cycle takes two writes then. If the second one is repeated, it must not take the next cycle, which the
// first one has begun, for the one that ends: a has not seen the change from 2 to 3.
func TestTheEndOfACycleIsNotRepeatedForTheNextOne(t *testing.T) {
	f := newFixture(t, m{"spec": m{"size": int64(1)}})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	cycleOfBoth := func() *record.Cycle {
		c := f.cycle(cause.Update, "a", "b")
		c.Declared, c.IsDue = []string{"a", "b"}, func(string, object.Essence, object.Essence) bool { return true }
		return c
	}
	f.write(Update{Cycle: f.finished(cause.Create)})
	f.change(m{"spec": m{"size": int64(2)}})
	f.refresh(f.cached())
	c := cycleOfBoth()
	succeed(c, "a")
	f.write(Update{Cycle: c})
	f.change(m{"spec": m{"size": int64(3)}})
	f.refresh(f.cached())
	c = cycleOfBoth()
	succeed(c, "b")
	lagging := fault{err: answer(http.StatusNotFound)}
	f.faults = []fault{{}, lagging}
	_ = f.writeFails(Update{Cycle: c}) // the API server drops the status from a write to the main part
	size, _ := object.Lookup(f.storedBase(), object.Path{"spec", "size"})
	f.expect("size of the base", size, int64(2))

	f.flush()
	f.refresh(f.cached())
	next := cycleOfBoth()
	stored, err := f.writer.Records.Read(t.Context(), f.body, next.Declared, nil, f.report)
	if err != nil {
		t.Fatal(err)
	}
	next.Reopen(stored)
	f.expect("a and b have ended", []bool{next.Progress.Load("a").Finished(), next.Progress.Load("b").Finished()}, []bool{false, true})
}

// The same goes for a rejection of the records: the edits are stored.
func TestRejectionOfTheRecordsInTheStatusBlamesNoHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	f.rejects = rejecting(422, "status", "kopf")
	f.edit("a", set("x", "spec", "a"))
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	_ = f.writeFails(Update{Cycle: c})
	_, failed := c.Progress.Counts()
	f.expect("failed, finished", []int{failed, f.done["a"]}, []int{0, 1})
	f.expect("edit", f.field("spec", "a"), "x")
	f.expect("events", len(f.events), 0)
}

// A policy that denies everything denies the records, too: no handler fails. The attempts of a
// deletion count in memory then, until they can be stored.
func TestDenialOfEverythingBlamesNoHandler(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	f.rejects = func(m) error { return answer(http.StatusUnprocessableEntity) }
	f.edit("a", set("x", "spec", "a"))
	c := f.cycle(cause.Delete, "a", "b")
	succeed(c, "a")
	f.expect("ended", f.write(Update{Cycle: c}).Ended, false)
	unstored := f.state.Unstored()
	f.expect("a, b", []bool{unstored["a"].Success, unstored["b"] == nil}, []bool{true, true})
	f.sent()
	f.flush()
	f.expectSent("") // the next update contains it

	f.rejects = nil
	f.write(Update{Cycle: c})
	_, failed := c.Progress.Counts()
	f.expect("failed, finished", []int{failed, f.done["a"]}, []int{0, 1})
	f.expect("edit", f.field("spec", "a"), "x")
	f.expect("record", f.storedRecord("a").Success, true)
	f.expect("pending", f.state.HasPending(), false)
}

// The next pass finds out what others have stored meanwhile.
func TestOutcomesInMemoryWaitForAStorageThatWorks(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	f.rejects = func(m) error { return answer(http.StatusUnprocessableEntity) }
	f.edit("a", set("x", "spec", "a"))
	c := f.cycle(cause.Delete, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c})
	working := f.writer.Records.Storages.Progress
	f.writer.Records.Storages.Progress = failingProgress{Progress: working, fetch: errStorage}
	f.expect("failed", errors.Is(f.retry(), errStorage), true)
	f.writer.Records.Storages.Progress = working
	f.flush()
	f.expect("a", f.state.Unstored()["a"].Success, true)
}

// The attempts of deletion handlers that count in memory outlast a write that is not about them: that of the edits that
// are left when the object is suspended.
func TestOutcomesInMemoryOutlastOtherWrites(t *testing.T) {
	for name, err := range map[string]error{"accepted": nil, "refused": answer(http.StatusUnprocessableEntity)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, deleting(ours, theirs))
			f.rejects = func(m) error { return answer(http.StatusUnprocessableEntity) }
			f.edit("a", set("x", "spec", "a"))
			c := f.cycle(cause.Delete, "a", "b")
			succeed(c, "a")
			f.write(Update{Cycle: c})
			f.nextPass()
			f.refresh(f.cached())
			f.flush()
			f.rejects = func(m) error { return err }
			f.write(Update{})
			f.expect("a", f.state.Unstored()["a"] != nil && f.state.Unstored()["a"].Success, true)
		})
	}
}

func TestOutcomesInMemoryEndWithTheirObject(t *testing.T) {
	f := denied(t)
	c := f.cycle(cause.Delete, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c})
	f.edit("event", set("x", "spec", "a"))
	f.faults = []fault{{err: answer(http.StatusNotFound), before: func() { f.object = nil }}}
	f.expect("gone", f.write(Update{}).Gone, true)
	f.expect("pending", f.state.HasPending(), false)
}

// A creation whose records cannot be stored must not hold the deletion that follows. What its handlers have
// written goes into the next update.
func TestADeletionSupersedesRecordsThatCannotBeStored(t *testing.T) {
	f := newFixture(t, m{"finalizers": []any{ours}})
	denied := answer(http.StatusUnprocessableEntity)
	f.rejects = func(m) error { return denied }
	f.edit("a", set("x", "spec", "a"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("denied", errors.Is(f.retry(), denied), true) // it goes on as long as the object is not being deleted
	f.change(m{"metadata": deleting(ours, theirs)})
	f.faults = []fault{{err: errDown}}
	f.expect("unanswered", errors.Is(f.retry(), errDown), true)
	f.expect("pending", f.state.HasPending(), true)
	f.expect("outcome", f.flush() == Outcome{}, true)
	f.expect("pending, edits, finished", []any{f.state.HasPending(), f.state.HasEdits(), f.done["a"]}, []any{false, true, 0})

	f.rejects = nil
	f.expect("outcome", f.flush() == Outcome{}, true)
	f.write(Update{Cycle: f.finished(cause.Delete, "b"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.expect("edit, finalizers", []any{f.field("spec", "a"), f.field("metadata", "finalizers")}, []any{"x", []any{theirs}})
}

// The deletion itself is not superseded: its outcomes count in memory.
func TestADeletionWithoutAResponseIsNotSuperseded(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	f.faults = []fault{{err: errDown}}
	_ = f.writeFails(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
	denied := answer(http.StatusUnprocessableEntity)
	f.rejects = func(m) error { return denied }
	f.expect("denied", errors.Is(f.retry(), denied), true)
	f.expect("a", f.state.Unstored()["a"].Success, true)
}

// Another operator can store what this one may not. Its outcome stands.
func TestOutcomesOfOthersStandBesideThoseInMemory(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	f.rejects = func(m) error { return answer(http.StatusUnprocessableEntity) }
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	c := f.cycle(cause.Delete, "a", "b", "c")
	succeed(c, "a", "b")
	f.write(Update{Cycle: c})
	f.rejects = nil
	f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
		failed := storage.Record{Started: time.Now(), Purpose: cause.Delete, Retries: 1, Failure: true, Message: "theirs"}
		return records.Storages.Progress.Store(t.Context(), body, into, "a", &failed)
	})
	f.nextPass()
	f.refresh(f.cached())
	f.flush()
	again := f.cycle(cause.Delete, "a", "b", "c")
	again.Progress.Restore(f.state.Unstored())
	f.expect("a, b", []bool{again.Progress.Load("a").Failure, again.Progress.Load("b").Success}, []bool{true, true})
	f.write(Update{Cycle: again})
	f.expect("records", []any{f.storedRecord("a").Message, f.storedRecord("b").Success}, []any{"theirs", true})
	f.expect("edits", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{nil, "x"})
}

// A deletion in the middle of an update removes the records of the update. Another client writes between its two
// writes: the end of the deletion handler is stored nevertheless.
func TestAConflictBetweenTheWritesOfADeletionLosesNoEnd(t *testing.T) {
	f := newFixture(t, m{"finalizers": []any{ours}})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	update := f.cycle(cause.Update, "a", "b")
	succeed(update, "a")
	f.write(Update{Cycle: update})
	f.change(m{"metadata": deleting(ours)})
	f.refresh(f.cached())
	f.edit("c", set("x", "spec", "c"))
	deletion := f.cycle(cause.Delete, "a", "b", "c", "d")
	succeed(deletion, "c")
	f.faults = []fault{{}, {before: func() { f.change(m{"metadata": m{"labels": m{"of": "others"}}}) }}}
	f.write(Update{Cycle: deletion})
	f.expect("edit", f.field("spec", "c"), "x")
	f.expect("c", f.storedRecord("c") != nil && f.storedRecord("c").Success, true)
	f.expect("a", f.storedRecord("a") == nil || f.storedRecord("a").Purpose == cause.Delete, true)
}

// Another client writes between the two writes at the end of a cycle, and another operator begins the next cycle.
func TestTheEndOfACycleRemovesNoRecordOfTheNextOne(t *testing.T) {
	f := newFixture(t, m{})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c})
	f.refresh(f.cached())
	f.faults = []fault{{}, {before: func() {
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			next := storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1, Message: "theirs"}
			return records.Storages.Progress.Store(t.Context(), body, into, "a", &next)
		})
	}}}
	f.write(Update{Cycle: f.finished(cause.Create, "a", "b")})
	f.expectSent("PATCH, PATCH status, PATCH, PATCH status, GET")
	f.expect("record", f.storedRecord("a").Message, "theirs")
}

// A denial that lasts does not hold the deletion: what handlers have written is dropped, and then
// the records.
func TestLastingDenialHoldsNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, deleting(ours, theirs))
		f.rejects = func(o m) error {
			if _, has := object.Lookup(o, object.Path{"metadata", "annotations"}); has {
				return answer(http.StatusUnprocessableEntity)
			}
			return nil
		}
		f.edit("a", set("x", "spec", "a"))
		c := f.finished(cause.Delete, "a")
		c.Progress.Load("a").Subrefs = []string{"other"} // keeps a record
		u := Update{Cycle: c, Decision: plan.Decision{RemoveFinalizer: true, Annotations: map[string]string{"example.com/honored": "1"}}}
		_ = f.writeFails(u)
		time.Sleep(2 * refusalPatience)
		f.write(u)
		f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs})
		f.expect("finished, edit", []any{f.done["a"], f.field("spec", "a")}, []any{1, nil})
	})
}

// Nothing is known about a denial if the server does not respond anymore.
func TestNothingIsDroppedWithoutAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, deleting(ours, theirs))
		f.rejects = func(m) error { return answer(http.StatusUnprocessableEntity) }
		f.edit("a", set("x", "spec", "a"))
		u := Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}}
		_ = f.writeFails(u)
		time.Sleep(2 * refusalPatience)
		f.rejects = inTurn(answer(http.StatusUnprocessableEntity), errDown)
		f.expect("unanswered", errors.Is(f.writeFails(u), errDown), true)
		f.expect("finished", f.done["a"], 0)
		f.write(u)
		f.expect("edit", f.field("spec", "a"), "x")
	})
}
