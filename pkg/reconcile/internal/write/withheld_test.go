package write

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// noPermission is the answer of the API server if an authorizer or an admission plugin refuses a
// write.
func noPermission() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "kex"}, "one", errors.New("you may not"))
}

// forbidding returns a rule against objects that have one of the fields.
func forbidding(paths ...object.Path) func(m) error {
	return func(of m) error {
		for _, path := range paths {
			if _, has := object.Lookup(of, path); has {
				return noPermission()
			}
		}
		return nil
	}
}

// retry flushes in a new pass, and returns its error.
func (f *fixture) retry() error {
	f.t.Helper()
	f.refresh(f.cached())
	_, err := f.Flush(f.t.Context())
	return err
}

func (f *fixture) storedIDs(ids ...string) (stored []string) {
	f.t.Helper()
	for _, id := range ids {
		if f.storedRecord(id) != nil {
			stored = append(stored, id)
		}
	}
	return stored
}

func TestAForbiddenEditHoldsBackNoOtherHandler(t *testing.T) {
	tests := map[string]struct {
		path []string // of the forbidden field
		sent string
	}{
		"in the main part": {[]string{"spec", "bad"}, "PATCH status, PATCH, DRYRUN, DRYRUN, DRYRUN, PATCH"},
		"in the status":    {[]string{"status", "bad"}, "PATCH status, DRYRUN, DRYRUN status, DRYRUN, DRYRUN status, DRYRUN status, DRYRUN, PATCH status, PATCH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = forbidding(test.path)
			c := f.finished(cause.Create, "result", "bad", "good", "silent")
			f.edit("result", set("x", "status", "result"))
			f.edit("bad", set("x", test.path...))
			f.edit("good", set("x", "spec", "good"))
			err := f.writeFails(Update{Cycle: c})
			f.expect("error", err, `the edits of these handlers wait for a permission (bad): kex "one" is forbidden: you may not`)
			f.expectSent(test.sent)
			f.expect("edits", []any{f.field("status", "result"), f.field(test.path...), f.field("spec", "good")}, []any{"x", nil, "x"})
			f.expect("stored", f.storedIDs("result", "bad", "good", "silent"), []string{"result", "good", "silent"})
			f.expect("base", f.storedBase(), object.Essence(nil))
			f.expect("finished", f.done, map[string]int{"result": 1, "good": 1})

			f.expect("forbidden", apierrors.IsForbidden(f.retry()), true)
			f.expectSent(strings.TrimSuffix("PATCH "+test.path[0], " spec")) // one request, as long as nothing changes

			f.rejects = nil
			f.expect("ended", f.flush().Ended, true)
			_, failed := c.Progress.Counts()
			f.expect("failed, events", []int{failed, len(f.events)}, []int{0, 0})
			f.expect("edit", f.field(test.path...), "x")
			f.expect("stored", f.storedIDs("result", "bad", "good", "silent"), []string(nil))
			f.expect("finished", f.done, map[string]int{"result": 1, "bad": 1, "good": 1})
		})
	}
}

// A role without the permission for any write costs one request more for each attempt, and none
// if there is only one part.
func TestWhatNothingCanBeSavedOfCostsFewRequests(t *testing.T) {
	tests := map[string]struct {
		handlers, edits []string
		sent            string
	}{
		"records alone":                    {[]string{"a"}, nil, "PATCH"},
		"one handler with an edit":         {[]string{"a"}, []string{"a"}, "PATCH"},
		"an edit, and records of others":   {[]string{"a", "b"}, []string{"a"}, "PATCH, DRYRUN"},
		"edits, and records of others":     {[]string{"a", "b", "c"}, []string{"a", "b"}, "PATCH, DRYRUN"},
		"edits of all handlers, forbidden": {[]string{"a", "b"}, []string{"a", "b"}, "PATCH, DRYRUN, DRYRUN"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = func(m) error { return noPermission() }
			for _, id := range test.edits {
				f.edit(id, set("x", "spec", id))
			}
			_ = f.writeFails(Update{Cycle: f.finished(cause.Create, test.handlers...)})
			f.expectSent(test.sent)
			_ = f.retry()
			f.expectSent(test.sent)
			f.rejects = nil
			f.expect("ended", f.flush().Ended, true)
			f.expectSent("PATCH")
			f.expect("finished", len(f.done), len(test.edits))
		})
	}
}

// What is permitted meanwhile is written with the next attempt, and the rest goes on waiting.
func TestForbiddenEditsAreTriedAgainOneByOne(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "a"}, object.Path{"spec", "b"})
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b")})
	f.rejects = forbidding(object.Path{"spec", "b"})
	_ = f.retry()
	f.expect("a, b", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", nil})
	f.expect("stored", f.storedIDs("a", "b"), []string{"a"})
	f.rejects = nil
	f.flush()
	f.expect("b", f.field("spec", "b"), "x")
	f.expect("finished", f.done, map[string]int{"a": 1, "b": 1})
}

// A policy can end before the dry runs, or not apply to them. Then it is not known what to withhold.
func TestARefusalThatIsNotRepeatedIsRetried(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = inTurn(noPermission())
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b")})
	f.expectSent("PATCH, DRYRUN, DRYRUN")
	f.expect("ended", f.flush().Ended, true)
	f.expectSent("PATCH")
}

// A policy can begin after the dry runs: it is not isolated again in the same pass.
func TestAnUpdateIsIsolatedOnceInAPass(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = inTurn(noPermission(), nil, noPermission(), nil, noPermission())
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b", "c")})
	f.expectSent("PATCH, DRYRUN, DRYRUN, DRYRUN, PATCH")
	f.flush()
	f.expect("a, b", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", "x"})
}

func TestARejectedEditFailsItsHandlerBesideAForbiddenOne(t *testing.T) {
	tests := map[string]error{"the rejection is found first": answer(http.StatusUnprocessableEntity), "the refusal is found first": noPermission()}
	for name, first := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			rejected, forbidden := rejecting(http.StatusUnprocessableEntity, "spec", "rejected"), forbidding(object.Path{"spec", "forbidden"})
			f.rejects = func(of m) error {
				if rejected(of) != nil && forbidden(of) != nil {
					return first
				}
				return errors.Join(rejected(of), forbidden(of))
			}
			c := f.finished(cause.Create, "rejected", "forbidden", "good")
			for _, id := range []string{"forbidden", "rejected", "good"} {
				f.edit(id, set("x", "spec", id))
			}
			_ = f.writeFails(Update{Cycle: c})
			f.expect("spec", f.field("spec"), m{"size": 1, "good": "x"})
			f.expect("failed", []bool{f.storedRecord("rejected").Failure, f.storedRecord("good").Failure}, []bool{true, false})
			f.expect("stored", f.storedIDs("forbidden"), []string(nil))
			f.rejects = nil
			f.flush()
			f.expect("spec", f.field("spec"), m{"size": 1, "good": "x", "forbidden": "x"})
		})
	}
}

// Only a refusal tells what to withhold.
func TestAnUnansweredDryRunWithholdsNothing(t *testing.T) {
	tests := map[string]struct {
		answers []error
		sent    string
	}{
		"of the records":     {[]error{noPermission(), errDown}, "PATCH, DRYRUN"},
		"of the first edit":  {[]error{noPermission(), nil, errDown}, "PATCH, DRYRUN, DRYRUN"},
		"of the second edit": {[]error{noPermission(), nil, noPermission(), errDown}, "PATCH, DRYRUN, DRYRUN, DRYRUN"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = inTurn(test.answers...)
			f.edit("a", set("x", "spec", "a"))
			f.edit("b", set("x", "spec", "b"))
			err := f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b", "c")})
			f.expect("unanswered", errors.Is(err, errDown), true)
			f.expectSent(test.sent)
			f.expect("ended", f.flush().Ended, true)
			f.expect("a, b", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", "x"})
			f.expect("finished", f.done, map[string]int{"a": 1, "b": 1})
		})
	}
}

// oneFailure is a storage that fails once, when it is told to, for the record of c.
type oneFailure struct {
	storage.Progress
	fails *bool
}

func (p oneFailure) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, r *storage.Record) error {
	if *p.fails && id == "c" {
		*p.fails = false
		return errStorage
	}
	return p.Progress.Store(ctx, body, into, id, r)
}

func TestAStorageThatFailsAfterARefusalEndsThePass(t *testing.T) {
	f := newFixture(t, m{})
	fails := false
	f.writer.Records.Storages.Progress = oneFailure{f.writer.Records.Storages.Progress, &fails}
	f.rejects = func(m) error { fails = true; return noPermission() }
	f.edit("a", set("x", "spec", "a"))
	err := f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b", "c")})
	f.expect("failed", errors.Is(err, errStorage), true)
	f.rejects = nil
	f.expect("ended", f.flush().Ended, true)
	f.expect("a", f.field("spec", "a"), "x")
}

// The transformation cannot be computed without the edit that it builds on, which is no fault of
// its handler.
func TestATransformationWaitsForTheForbiddenEditThatItBuildsOn(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "first"})
	c := f.finished(cause.Create, "first", "second", "third", "fourth")
	f.edit("first", set("x", "spec", "first"))
	f.edit("second", requiring("first", "second"))
	f.edit("third", set("x", "spec", "third"))
	f.edit("fourth", requiring("third", "fourth"))
	err := f.writeFails(Update{Cycle: c})
	f.expect("error", strings.Contains(err.Error(), "(first, second)"), true)
	f.expect("spec", f.field("spec"), m{"size": 1, "third": "x", "fourth": "x"})
	f.rejects = nil
	f.flush()
	_, failed := c.Progress.Counts()
	f.expect("failed, events", []int{failed, len(f.events)}, []int{0, 0})
	f.expect("spec", f.field("spec"), m{"size": 1, "first": "x", "second": "x", "third": "x", "fourth": "x"})
}

// The record of a handler refers to those of its sub-handlers, and its success says that all of
// them have ended.
func TestAHandlerWaitsForTheForbiddenEditOfItsSubhandler(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	c := f.finished(cause.Create, "fn", "fn/one", "fn/two", "other")
	c.Declared = []string{"fn", "other"}
	f.edit("fn/one", set("x", "spec", "bad"))
	f.edit("other", set("x", "spec", "other"))
	_ = f.writeFails(Update{Cycle: c})
	f.expect("stored", f.storedIDs("fn", "fn/one", "fn/two", "other"), []string{"other"})
	f.rejects = nil
	f.expect("ended", f.flush().Ended, true)
}

// A request is honored when the outcomes of all handlers are stored: after a crash, it must still
// be there for the others.
func TestARequestIsNotHonoredWhileAnEditIsForbidden(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.edit("bad", set("x", "spec", "bad"))
	decision := plan.Decision{Annotations: map[string]string{"honored": "yes"}}
	_ = f.writeFails(Update{Cycle: f.finished(cause.Update, "bad", "good"), Decision: decision})
	f.expect("annotation", f.field("metadata", "annotations", "honored"), nil)
	f.expect("stored", f.storedIDs("good"), []string{"good"})
	f.rejects = nil
	f.flush()
	f.expect("annotation", f.field("metadata", "annotations", "honored"), "yes")
}

// The edit of an event handler or a daemon belongs to no cycle. The cycle ends with it.
func TestAForbiddenEditOfNoCycleHoldsBackNoOutcome(t *testing.T) {
	f := newFixture(t, m{"finalizers": []any{ours}})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.edit("daemon", set("x", "spec", "bad"))
	u := Update{Cycle: f.finished(cause.Create, "a"), Decision: plan.Decision{RemoveFinalizer: true}}
	_ = f.writeFails(u)
	f.expect("stored", f.storedIDs("a"), []string{"a"})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{ours})
	f.rejects = nil
	f.expect("ended", f.flush().Ended, true)
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{})
}

func TestForbiddenConditionsHoldBackNoOutcome(t *testing.T) {
	for edited, handlers := range map[string][]string{"a": {"a"}, "b": {"a", "b"}, "": {"a", "b"}} {
		f := newFixture(t, generation)
		f.rejects = forbidding(object.Path{"status", "conditions"})
		if edited != "" {
			f.edit(edited, set("x", "status", "edit"))
		}
		c := f.finished(cause.Create, handlers...)
		err := f.writeFails(Update{Cycle: c, Decision: f.saying(c)})
		f.expect("error", strings.HasPrefix(err.Error(), "the status waits for a permission: "), true)
		f.expect("edited", f.field("status", "edit") == "x", edited != "")
		f.expect("stored", f.storedIDs("a", "b"), handlers)
		f.sent()
		_ = f.retry()
		f.expectSent("PATCH status")
		f.rejects = nil
		f.expect("ended", f.flush().Ended, true)
		f.expect("said", f.ready(), "Reconciled")
	}
}

// Nothing else changes the order in which the edits of handlers are applied.
func TestWithheldEditsKeepTheirPlaces(t *testing.T) {
	for name, first := range map[string]error{"of a refused write": noPermission(), "of a rejected write": answer(http.StatusUnprocessableEntity)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = forbidding(object.Path{"spec", "bad"})
			f.edit("first", set(1, "spec", "x"))
			f.edit("second", set("x", "spec", "bad"))
			f.edit("third", set(3, "spec", "x"))
			f.faults = []fault{{err: first}, {err: errDown}}
			err := f.writeFails(Update{Cycle: f.finished(cause.Create, "first", "second", "third")})
			f.expect("down", errors.Is(err, errDown), true)
			var ids []string
			for _, edit := range f.state.edits {
				ids = append(ids, edit.ID)
			}
			f.expect("edits", ids, []string{"first", "second", "third"})
		})
	}
}

// Another client deletes the object between the dry runs and the write.
func TestWithheldEditsEndWithTheirObject(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.edit("good", set("x", "spec", "good"))
	f.edit("bad", set("x", "spec", "bad"))
	f.faults = []fault{{err: noPermission()}, {before: func() { f.object = nil }}}
	f.expect("gone", f.write(Update{Cycle: f.finished(cause.Create, "good", "bad")}).Gone, true)
	f.expect("finished", f.done, map[string]int{"good": 1, "bad": 1})
	f.expect("left", f.state.HasEdits(), false)
}

// The answer to the partial write is lost: what has arrived is not written again.
func TestAPartialWriteWithoutAnAnswerIsNotRepeated(t *testing.T) {
	f := newFixture(t, m{"annotations": m{}})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.change(m{"spec": m{"list": []any{}}})
	f.refresh(f.cached())
	f.edit("good", appendTo("spec", "list"))
	f.edit("bad", set("x", "spec", "bad"))
	f.faults = []fault{{err: noPermission()}, {lost: errDown}}
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "good", "bad")})
	f.rejects = nil
	f.flush()
	f.expect("list, bad", []any{f.field("spec", "list"), f.field("spec", "bad")}, []any{[]any{"x"}, "x"})
	f.expect("finished", f.done, map[string]int{"good": 1, "bad": 1})
}

// A storage may panic while the edits are tried one by one.
func TestAPanicLosesNoWithheldEdit(t *testing.T) {
	f := newFixture(t, m{})
	dryRuns := 0
	f.rejects = func(of m) error {
		if f.requests[len(f.requests)-1].name == "DRYRUN" {
			dryRuns++
		}
		if dryRuns == 3 {
			panic("a storage")
		}
		return forbidding(object.Path{"spec", "bad"})(of)
	}
	for _, id := range []string{"bad", "good", "other"} {
		f.edit(id, set("x", "spec", id))
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = f.Write(t.Context(), Update{Cycle: f.finished(cause.Create, "bad", "good", "other", "silent")})
	}()
	f.rejects = nil
	f.expect("ended", f.flush().Ended, true)
	f.expect("spec", f.field("spec"), m{"size": 1, "bad": "x", "good": "x", "other": "x"})
}

// While an object is being deleted, the outcomes of other deletion handlers are stored as well, and
// the finalizer of the operator stays for as long as something may be corrected.
func TestAForbiddenEditOfADeletionHandlerHoldsBackNoOther(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.edit("bad", set("x", "spec", "bad"))
	u := Update{Cycle: f.finished(cause.Delete, "bad", "good"), Decision: plan.Decision{RemoveFinalizer: true}}
	_ = f.writeFails(u)
	f.expect("stored", f.storedIDs("bad", "good"), []string{"good"})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{ours, theirs})
	u.refusedAt = time.Now().Add(-refusalPatience)
	f.refresh(f.cached())
	f.state.pending.refusedAt = u.refusedAt
	f.expect("ended", f.write(u).Ended, true)
	f.expect("finalizers, edit", []any{f.field("metadata", "finalizers"), f.field("spec", "bad")}, []any{[]any{theirs}, nil})
	f.expect("finished", f.done, map[string]int{"bad": 1})
}

// The edits of an object that is being deleted are dropped together, after a minute, or not at all.
func TestWithheldEditsAreNotDroppedInPart(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	rejection := answer(http.StatusUnprocessableEntity)
	f.rejects = inTurn(rejection, nil, noPermission(), rejection, rejection)
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	u := Update{Cycle: f.finished(cause.Delete, "a", "b"), Decision: plan.Decision{RemoveFinalizer: true}, refusedAt: time.Now().Add(-refusalPatience)}
	err := f.writeFails(u)
	f.expect("rejected", errors.Is(err, rejection), true)
	f.expect("edits", len(f.state.edits), 2)
	f.expect("finished", len(f.done), 0)
}

// If the last finalizer is removed, the edits are not a part of the write.
func TestAForbiddenReleaseIsNotIsolated(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.rejects = func(m) error { return noPermission() }
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "b"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Delete, "a", "b", "c"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.expectSent("PATCH")
}

// The records of calls outside of the cycle wait for their edits, too.
func TestTheRecordOfACallWaitsForItsForbiddenEdit(t *testing.T) {
	f := newFixture(t, m{})
	f.rejects = forbidding(object.Path{"spec", "bad"})
	f.edit("bad", set("x", "spec", "bad"))
	records := map[string]*storage.Record{"bad": {Retries: 1}, "other": {Retries: 2}}
	calls := &record.Calls{Progress: f.cycle(cause.Update).Progress, Records: func() map[string]*storage.Record { return records }, Done: func() {}}
	_ = f.writeFails(Update{Calls: calls})
	f.expect("stored", f.storedIDs("bad", "other"), []string{"other"})
}
