package write

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/storage"
)

// redefined makes a fixture whose target is out of date: the status is a subresource now, or
// is one no longer. It returns what the target was told.
func redefined(t *testing.T, subresource bool) (*fixture, *[]bool) {
	f, told := newFixture(t, m{}), &[]bool{}
	f.server.statusSubresource = subresource
	f.target.StatusSubresource = !subresource
	f.target.Redefined = func(has bool) { *told = append(*told, has) }
	return f, told
}

func TestResultIsStoredWhenTheStatusBecomesASubresource(t *testing.T) {
	f, told := redefined(t, true)
	f.edit("a", func(p *patch.Patch) { set("x", "status", "phase")(p); appendTo("spec", "list")(p) })
	outcome := f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("PATCH, PATCH status")
	f.expect("phase, list", []any{f.field("status", "phase"), f.field("spec", "list")}, []any{"x", []any{"x"}})
	f.expect("ended, done, told", []any{outcome.Ended, f.done["a"], *told}, []any{true, 1, []bool{true}})
	f.expect("events", f.events, []string{})
}

func TestResultIsStoredWhenTheStatusIsNoLongerASubresource(t *testing.T) {
	f, told := redefined(t, false)
	f.edit("a", set("x", "status", "phase"))
	outcome := f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expect("patch of the status", f.server.requests[2].patch["status"] != nil && len(f.server.requests[2].patch) == 2, true)
	f.expectSent("PATCH status, LIST, PATCH, PATCH")
	f.expect("phase", f.field("status", "phase"), "x")
	f.expect("ended, done, told", []any{outcome.Ended, f.done["a"], *told}, []any{true, 1, []bool{false}})
}

// A session writes several times.
func TestLaterWritesFollowTheDefinitionOfTheStatus(t *testing.T) {
	f, told := redefined(t, false)
	f.edit("a", set("x", "status", "a"))
	f.write(Update{})
	f.server.requests = nil
	f.edit("b", set("x", "status", "b"))
	f.write(Update{})
	f.expectSent("PATCH")
	f.server.statusSubresource = true
	f.edit("c", set("x", "status", "c"))
	f.write(Update{})
	f.expectSent("PATCH, PATCH status")
	f.expect("status, told", []any{f.field("status"), *told}, []any{m{"a": "x", "b": "x", "c": "x"}, []bool{false, true}})
}

// An API server that lags behind answers the same to the write of a status that it has.
func TestSuccessIsNotRecordedBeforeAStatusThatIsNotFound(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{err: answer(http.StatusNotFound)}}
	f.edit("a", func(p *patch.Patch) { set("x", "status", "phase")(p); appendTo("spec", "list")(p) })
	err := f.writeFails(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("PATCH status, LIST, PATCH, GET")
	f.expect("error", strings.Contains(err.Error(), "neither"), true)
	f.expect("list, base", []any{f.field("spec", "list"), f.storedBase() == nil}, []any{nil, true})
	f.expect("subresource, uncertain, events", []any{f.target.StatusSubresource, f.state.mustRead, len(f.events)}, []any{true, false, 0})

	f.expect("ended later", f.flush().Ended, true)
	f.expectSent("PATCH status, PATCH")
	f.expect("phase, list", []any{f.field("status", "phase"), f.field("spec", "list")}, []any{"x", []any{"x"}})
	f.expect("done", f.done["a"], 1)
}

func TestStatusThatIsNoLongerASubresourceIsWrittenOnce(t *testing.T) {
	tests := map[string]struct {
		fault func(f *fixture) fault
		fails bool
		sent  string
	}{
		"a conflict": {func(f *fixture) fault {
			return fault{before: func() { f.change(m{"metadata": m{"labels": m{"a": "b"}}}) }}
		}, false, "PATCH status, LIST, PATCH, GET, PATCH, PATCH"},
		"a lost response": {func(*fixture) fault { return fault{lost: errDown} }, true, "PATCH status, LIST, PATCH, GET, PATCH"},
		"a late write":    {func(*fixture) fault { return fault{late: errDown} }, true, "PATCH status, LIST, PATCH, GET, PATCH status, LIST, PATCH, PATCH"},
		"a rejection":     {func(*fixture) fault { return fault{err: answer(http.StatusUnprocessableEntity)} }, true, "PATCH status, LIST, PATCH, DRYRUN, DRYRUN, DRYRUN, PATCH status, LIST, PATCH, PATCH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := redefined(t, false)
			f.faults = []fault{{}, test.fault(f)}
			f.edit("a", func(p *patch.Patch) { appendTo("status", "list")(p); appendTo("spec", "list")(p) })
			u := Update{Cycle: f.finished(cause.Create, "a")}
			if test.fails {
				_ = f.writeFails(u)
				f.flush()
			} else {
				f.write(u)
			}
			f.expectSent(test.sent)
			f.expect("lists, done", []any{f.field("status", "list"), f.field("spec", "list"), f.done["a"]}, []any{[]any{"x"}, []any{"x"}, 1})
			f.expect("success", f.storedBase() != nil, true)
		})
	}
}

// The response 404 of a status does not show that there is none, unless the object is listed.
func TestAMissingStatusIsConfirmed(t *testing.T) {
	f, told := redefined(t, false)
	f.readErr = errDown
	f.edit("a", set("x", "status", "phase"))
	_ = f.writeFails(Update{})
	f.expectSent("PATCH status, LIST")
	f.expect("told, subresource", []any{*told, f.target.StatusSubresource}, []any{[]bool{}, true})
	f.readErr, f.target.Redefined = nil, nil
	f.flush()
	f.expect("phase", f.field("status", "phase"), "x")
}

// The rest of the edits is stored before their status: nothing of it may be repeated.
func TestDroppedStatusIsWrittenAfterFailures(t *testing.T) {
	other := func(f *fixture) { f.change(m{"metadata": m{"labels": m{"a": "b"}}}) }
	tests := map[string]struct {
		fault func(f *fixture) fault
		fails bool
		sent  string
	}{
		"a conflict":         {func(f *fixture) fault { return fault{before: func() { other(f) }} }, false, "PATCH, PATCH status, GET, PATCH status"},
		"no response":        {func(*fixture) fault { return fault{err: errDown} }, true, "PATCH, PATCH status, GET, PATCH, PATCH status"},
		"a lost response":    {func(*fixture) fault { return fault{lost: errDown} }, true, "PATCH, PATCH status, GET"},
		"another definition": {func(f *fixture) fault { return fault{before: func() { f.server.statusSubresource = false }} }, false, "PATCH, PATCH status, LIST"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := redefined(t, true)
			f.faults = []fault{{}, test.fault(f)}
			f.edit("a", func(p *patch.Patch) { set("x", "status", "phase")(p); appendTo("spec", "list")(p) })
			u := Update{Cycle: f.finished(cause.Create, "a")}
			if test.fails {
				_ = f.writeFails(u)
				f.target.StatusSubresource = false // the next pass does not know it
				f.flush()
			} else {
				f.write(u)
			}
			f.expectSent(test.sent)
			f.expect("list, done", []any{f.field("spec", "list"), f.done["a"]}, []any{[]any{"x"}, 1})
			if name != "another definition" {
				f.expect("phase", f.field("status", "phase"), "x")
			}
			f.expect("success", f.storedBase() != nil, true)
		})
	}
}

// The records are stored by then, so the refusal belongs to no handler.
func TestRefusedStatusAfterTheRecordsIsReported(t *testing.T) {
	refused := func(rejects func(m) error) *fixture {
		f, _ := redefined(t, true)
		f.rejects = rejects
		for _, id := range []string{"a", "b"} {
			f.edit(id, set(id, "status", "phase"))
		}
		return f
	}
	f := refused(rejecting(http.StatusUnprocessableEntity, "status", "phase"))
	f.write(Update{Cycle: f.finished(cause.Create, "a", "b")})
	f.expect("events", len(f.events) == 1 && strings.HasPrefix(f.events[0], "WriteRejected: The status that handlers have set was rejected: "), true)
	f.expect("success", f.storedBase() != nil, true)

	f = refused(forbidding(object.Path{"status", "phase"}))
	err := f.writeFails(Update{Cycle: f.finished(cause.Create, "a", "b")})
	f.expect("error", strings.HasPrefix(err.Error(), "the status waits for a permission: "), true)
	f.expect("success", f.storedBase() != nil, true)
}

// The response looks the same if the schema does not have the status. This is checked once.
func TestPrunedStatusIsNotTakenForASubresource(t *testing.T) {
	for name, missing := range map[string]fault{"a custom resource": {}, "a built-in resource": {err: page()}} {
		t.Run(name, func(t *testing.T) { testPrunedStatus(t, missing) })
	}
}

func testPrunedStatus(t *testing.T, missing fault) {
	f, told := redefined(t, false)
	f.target.StatusSubresource, f.prunesStatus = false, true
	f.faults = []fault{{}, missing}
	for i, sent := range []string{"PATCH, PATCH status, LIST", "PATCH"} {
		f.refresh(f.cached())
		f.edit("a", set(i, "status", "phase"))
		f.edit("b", set(i, "spec", "b"))
		f.write(Update{})
		f.expectSent(sent)
	}
	f.expect("done, told, events", []any{f.done["a"], *told, len(f.events)}, []any{2, []bool{}, 1})
	f.expect("uncertain", f.state.mustRead, false)
}

func TestObjectThatIsDeletedMeanwhileIsGone(t *testing.T) {
	for _, subresource := range []bool{true, false} {
		f, told := redefined(t, subresource)
		gone := fault{err: answer(http.StatusNotFound), before: func() { f.object = nil; f.version++ }}
		f.faults = []fault{{}, gone}
		if !subresource {
			f.faults = f.faults[1:]
		}
		f.edit("a", set("x", "status", "phase"))
		outcome := f.write(Update{Cycle: f.finished(cause.Create, "a")})
		f.expect("gone, done, told", []any{outcome.Gone, f.done["a"], *told}, []any{true, 1, []bool{}})
	}
}

func TestRecordsInTheStatusFollowItsDefinition(t *testing.T) {
	for _, subresource := range []bool{true, false} {
		f, _ := redefined(t, subresource)
		f.writer.Records.Storages.Progress = storage.StatusProgress{}
		f.state.Add(call.Edit{ID: "none", Patch: &patch.Patch{}})
		c := f.cycle(cause.Create, "a", "b")
		succeed(c, "a")
		f.write(Update{Cycle: c})
		if stored := f.storedRecord("a"); stored == nil || !stored.Success {
			t.Errorf("got %+v", stored)
		}
	}
}

func TestRecordsInAStatusThatIsNoSubresourceNeedNoOtherWrite(t *testing.T) {
	f := newFixture(t, m{})
	f.server.statusSubresource, f.target.StatusSubresource = false, false
	f.writer.Records.Storages.Progress = storage.StatusProgress{}
	c := f.cycle(cause.Create, "a", "b")
	succeed(c, "a")
	f.write(Update{Cycle: c, Decision: plan.Decision{AddFinalizer: true}})
	f.expectSent("PATCH")
	if stored := f.storedRecord("a"); stored == nil || !stored.Success {
		t.Errorf("got %+v", stored)
	}
}
