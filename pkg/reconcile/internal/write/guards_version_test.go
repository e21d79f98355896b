package write

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Each guard of the writer has a test here that fails without the guard. The test
// UnitGuards in test/faults removes one guard after another to show that:
//
//	go test ./test/faults -run UnitGuards -without-guards

var errDown = answer(http.StatusServiceUnavailable)

func TestGuard01EveryPatchIsBoundToAVersion(t *testing.T) {
	f := newFixture(t, m{})
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	f.edit("a", set("x", "status", "phase"))
	f.edit("a", set("x", "spec", "a"))
	f.edit("b", set("x", "spec", "bad"))
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	c := f.cycle(cause.Create, "a", "b", "c")
	succeed(c, "a", "b")
	f.write(Update{Cycle: c, Decision: plan.Decision{AddFinalizer: true}})
	for _, r := range f.requests {
		version, _ := object.Lookup(r.patch, object.Path{"metadata", "resourceVersion"})
		f.expect(r.name+": version", version, r.version)
	}
	// The rejected write comes after that of the status, and is found by dry runs.
	f.expectSent("PATCH status, PATCH, DRYRUN, DRYRUN status, DRYRUN, DRYRUN, DRYRUN, PATCH, PATCH status")
}

func TestGuard01AWriteDoesNotUndoTheWriteOfAnother(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"metadata": m{"finalizers": []any{theirs}}}) }}}
	f.write(Update{Decision: plan.Decision{AddFinalizer: true}})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs, ours})
}

func TestGuard02TheStatusIsWrittenBeforeTheRecords(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{err: errDown}}
	f.edit("a", set("x", "status", "phase"))
	_ = f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("PATCH status, GET")
	f.expect("base", f.storedBase() == nil, true)
	f.expect("ended", f.flush().Ended, true)
	f.expectSent("PATCH status, PATCH")
	f.expect("phase", f.field("status", "phase"), "x")
	f.expect("base", f.storedBase() != nil, true)
}

func TestGuard03TheObjectIsReadAfterAConflict(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
	f.edit("a", appendTo("spec", "list"))
	outcome := f.write(Update{})
	f.expectSent("PATCH, GET, PATCH")
	f.expect("by others", outcome.ChangedByOthers, true)
	f.expect("spec", f.field("spec"), m{"size": 2, "list": []any{"x"}})
	f.expect("version of the session", f.Body().ResourceVersion(), f.field("metadata", "resourceVersion"))
}

func TestGuard04TheObjectIsReadAfterAnUnansweredWrite(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{lost: errDown}}
	f.edit("a", set("x", "spec", "a"))
	err := f.writeFails(Update{})
	f.expect("error", err, errDown)
	f.expectSent("PATCH, GET")
	f.expect("uncertain", f.state.mustRead, false)
	f.expect("minimal version", f.state.minVersion, "8")
}

func TestGuard05NoPassBeginsWhileAWriteIsUncertain(t *testing.T) {
	f := newFixture(t, m{})
	cached := f.cached()
	f.faults, f.readErr = []fault{{lost: errDown}}, errDown
	f.edit("a", set("x", "spec", "a"))
	_ = f.writeFails(Update{})
	f.expect("reconciled", f.state.IsReconciled("7", "7"), false)
	f.sent()

	f.nextPass()
	if fresh, err := f.Refresh(t.Context(), cached); fresh.Fresh || !errors.Is(err, errDown) {
		t.Errorf("got %+v, %v", fresh, err)
	}
	f.readErr = nil
	f.refresh(cached)
	f.expectSent("GET, GET")
	f.expect("version", f.Body().ResourceVersion(), "8")
}

func TestGuard06NoPassBeginsBelowTheMinimalVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, m{})
		cached := f.cached()
		f.edit("a", set("x", "spec", "a"))
		f.write(Update{})
		f.sent()
		time.Sleep(time.Second)
		f.nextPass()
		fresh, err := f.Refresh(t.Context(), cached)
		if err != nil || fresh.Fresh || f.Body() != nil {
			t.Errorf("got %+v, %v", fresh, err)
		}
		f.expect("wait", fresh.WaitFor, f.writer.ConsistencyTimeout-time.Second)
		f.refresh(f.cached())
		f.expectSent("")
	})
}

func TestGuard07TheObjectIsReadAfterTheConsistencyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, m{})
		cached := f.cached()
		f.edit("a", set("x", "spec", "a"))
		f.write(Update{})
		f.sent()
		time.Sleep(f.writer.ConsistencyTimeout)
		f.refresh(cached)
		f.expectSent("GET")
		f.expect("version", f.Body().ResourceVersion(), "8")
	})
}

func TestGuard08AnotherUIDMeansGone(t *testing.T) {
	tests := map[string]func(f *fixture) (gone bool){
		"in a write": func(f *fixture) bool {
			f.faults = []fault{{before: f.replace}}
			return f.write(Update{Cycle: f.cycle(cause.Create, "a"), Decision: plan.Decision{AddFinalizer: true}}).Gone
		},
		"at the beginning of a pass": func(f *fixture) bool {
			cached := f.cached()
			f.faults, f.readErr = []fault{{err: errDown}}, errDown
			_ = f.writeFails(Update{})
			f.replace()
			f.readErr = nil
			f.nextPass()
			fresh, err := f.Refresh(f.t.Context(), cached)
			return err == nil && fresh == Freshness{}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.edit("a", set("x", "spec", "a"))
			f.expect("gone", test(f), true)
			f.expect("gone for the state", f.state.Gone(), true)
			f.expect("finished", f.done["a"], 1)
			f.expect("version of the other object", f.version, 8)
		})
	}
}

func TestGuard09TheLastFinalizerMeansGone(t *testing.T) {
	f := newFixture(t, deleting(ours))
	cached := f.cached()
	f.edit("a", set("x", "spec", "a"))
	outcome := f.write(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.expectSent("PATCH") // neither the edits nor the records: they are deleted, too
	f.expect("object", f.object == nil, true)
	f.expect("gone, ended", []bool{outcome.Gone, outcome.Ended}, []bool{true, true})
	f.expect("finished", f.done["a"], 1)

	// The watch still shows the object, in the version that the server has answered.
	f.nextPass()
	fresh, err := f.Refresh(t.Context(), cached)
	f.expect("next pass", fresh == Freshness{} && err == nil, true)
	f.edit("b", set("x", "spec", "b"))
	f.expect("finished later", f.done["b"], 1)
}

// The API server deletes an object without comparing versions again, so a write of another
// operator can come between the removal of the last finalizer and the deletion.
func TestGuard09NoLaterVersionBringsADeletedObjectBack(t *testing.T) {
	tests := map[string]struct {
		metadata m
		later    m // changes the object that the watch shows
		back     bool
	}{
		"a crossing write":            {deleting(ours), m{}, false},
		"a grace period of 0":         {patch.ApplyMerge(deleting(ours), m{"deletionGracePeriodSeconds": int64(0)}), m{}, false},
		"a grace period":              {patch.ApplyMerge(deleting(ours), m{"deletionGracePeriodSeconds": int64(30)}), m{}, true},
		"another object of this name": {deleting(ours), m{"uid": "u-2"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.metadata)
			shown := patch.ApplyMerge(f.object, m{"metadata": test.later})
			f.write(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
			f.state.MarkGone() // as the engine does at the end of the pass
			f.store(shown)
			f.state.Reset(f.cached().GetUID())
			f.nextPass()
			fresh, err := f.Refresh(t.Context(), f.cached())
			f.expect("fresh, error, gone", []any{fresh.Fresh, err, f.state.Gone()}, []any{test.back, nil, !test.back})
		})
	}
}

func TestGuard09AnotherFinalizerKeepsTheObject(t *testing.T) {
	f := newFixture(t, deleting(ours, theirs))
	outcome := f.write(Update{Cycle: f.finished(cause.Delete, "a"), Decision: plan.Decision{RemoveFinalizer: true}})
	f.expect("gone, ended", []bool{outcome.Gone, outcome.Ended}, []bool{false, true})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs})
}
