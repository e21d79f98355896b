package write

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/storage"
)

// decided returns the decision about the end of a cycle of objects with conditions, and of a handler "fn" with a
// revision.
func (f *fixture) decided(c *record.Cycle) plan.Decision {
	p := &plan.Plan{Cause: handler.Cause{Reason: c.Reason}, Cycle: c, InScope: true, Handlers: registry.Handlers{{ID: "fn"}}}
	p.CallContext.Body = f.body
	return p.DecideEnd(p, plan.Circumstances{
		Handlers:  &plan.Handlers{IDs: []string{"fn"}, HasConditions: true, Revised: registry.Handlers{{ID: "fn", Revision: "2"}}},
		Revisions: &revision.Reviser{Annotation: "mark"}, Now: time.Now(),
	})
}

// saying returns the decision about the conditions alone.
func (f *fixture) saying(c *record.Cycle) plan.Decision {
	return plan.Decision{Conditions: f.decided(c).Conditions}
}

// ready returns the reason of the condition Ready, or nil if there is none.
func (f *fixture) ready() any { return condition.Of(f.object).Get(condition.Ready)["reason"] }

var generation = m{"generation": int64(1)}

func TestConditionsAreWrittenWithTheStatus(t *testing.T) {
	f := newFixture(t, generation)
	f.edit("fn", set("done", "status", "result"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expectSent("PATCH status, PATCH")
	f.expect("said", f.ready(), "Reconciled")
	f.expect("result", f.field("status", "result"), "done")
	f.expect("base", f.storedBase() != nil, true)

	f.refresh(f.cached())
	f.write(Update{Decision: f.saying(c)})
	f.expectSent("") // they say the same
}

func TestConditionsAreDecidedAgainAfterARejection(t *testing.T) {
	f := newFixture(t, generation)
	f.rejects = func(object m) error {
		if spec, _ := object["spec"].(m); spec["bad"] != nil {
			return answer(http.StatusUnprocessableEntity)
		}
		return nil
	}
	f.edit("fn", set("x", "spec", "bad"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expect("said", f.ready(), "HandlersFailed")
	f.expect("failed", c.Progress.Load("fn").Failure, true)
}

func TestConditionsThatAreRejectedFailNoHandler(t *testing.T) {
	for name, rejection := range map[string]error{"for good": answer(http.StatusUnprocessableEntity), "without an answer to the question": errDown} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, generation)
			f.rejects = func(object m) error {
				if status, _ := object["status"].(m); status["conditions"] == nil {
					return nil
				}
				if len(f.requests) > 1 {
					return rejection
				}
				return answer(http.StatusUnprocessableEntity)
			}
			f.edit("fn", set("done", "status", "result"))
			c := f.finished(cause.Create, "fn")
			u := Update{Cycle: c, Decision: f.saying(c)}
			if errors.Is(rejection, errDown) {
				f.expect("unanswered", errors.Is(f.writeFails(u), errDown), true)
				f.expectSent("PATCH status, DRYRUN status") // nothing else is asked
				f.rejects = nil
				f.flush()
				f.expect("said", f.ready(), "Reconciled")
				f.expect("result", f.field("status", "result"), "done")
				return
			}
			f.write(u)
			f.expect("status", f.field("status"), m{"result": "done"})
			f.expect("failed", c.Progress.Load("fn").Failure, false)
			f.expect("events", len(f.events) == 1 && strings.HasPrefix(f.events[0], "ConditionsRefused: "), true)
			f.requests = nil
			f.refresh(f.cached())
			f.write(Update{Decision: f.saying(c)})
			f.expectSent("") // they are not tried again
		})
	}
}

// Conditions are not blamed for what a handler writes to the status.
func TestConditionsAreWrittenBesideARejectedStatus(t *testing.T) {
	f := newFixture(t, generation)
	f.rejects = rejecting(http.StatusUnprocessableEntity, "status", "bad")
	f.edit("fn", set("x", "status", "bad"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expect("said", f.ready(), "HandlersFailed")
	f.expect("rejected", f.field("status", "bad"), nil)
}

// Conditions are written before the records, but not if the records cannot be.
func TestConditionsAreNotWrittenWithoutRecords(t *testing.T) {
	f := newFixture(t, generation)
	c := f.finished(cause.Create, "fn")
	f.writer.Records.Storages.DiffBase = failingBase{DiffBase: f.writer.Records.Storages.DiffBase, store: errStorage}
	err := f.writeFails(Update{Cycle: c, Decision: f.saying(c)})
	f.expect("error", errors.Is(err, errStorage), true)
	f.expectSent("")
}

func TestConditionsThatAreDroppedAreGivenUp(t *testing.T) {
	f := newFixture(t, generation)
	f.prunesStatus = true
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expect("refused", f.report.Object.Has(conditionsRefused), true)
	f.expect("base", f.storedBase() != nil, true)
}

// changedMeanwhile changes the object as if its cycle had begun with another state.
func (f *fixture) changedMeanwhile() {
	f.t.Helper()
	first := storage.Patch{}
	kept := &storage.Cycle{Token: "4711", First: object.Essence{"spec": m{"size": int64(0)}}}
	storages, _ := f.writer.Records.Storages.DiffBase.(storage.CycleBase)
	if err := storages.StoreCycle(f.t.Context(), f.body, first, kept); err != nil {
		f.t.Fatal(err)
	}
	f.change(patch.ApplyMerge(first, m{"metadata": m{"annotations": m{"kopf.zalando.org/other": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create","success":true,"cycle":"4711"}`}}}))
	f.refresh(f.cached())
}

// due returns a cycle whose handlers are due for all changes.
func (f *fixture) due(ids ...string) *record.Cycle {
	c := f.cycle(cause.Create, ids...)
	c.Declared, c.IsDue = ids, func(string, object.Essence, object.Essence) bool { return true }
	return c
}

// The conditions are written before the records, so they must know whether another cycle
// follows.
func TestConditionsForeseeTheNextCycle(t *testing.T) {
	tests := map[string]struct {
		prepare  func(f *fixture)
		finished []string
		want     any
	}{
		"nothing follows":                         {func(*fixture) {}, []string{"fn", "other"}, "Reconciled"},
		"the handler has changed the object":      {func(f *fixture) { f.edit("fn", set("x", "spec", "color")) }, []string{"fn", "other"}, nil},
		"the object has changed during the cycle": {(*fixture).changedMeanwhile, []string{"fn", "other"}, nil},
		"the cycle goes on":                       {(*fixture).changedMeanwhile, []string{"other"}, "HandlersRunning"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, generation)
			test.prepare(f)
			c := f.due("fn", "other")
			succeed(c, test.finished...)
			f.write(Update{Cycle: c, Decision: f.saying(c)})
			f.expect("said", f.ready(), test.want)
		})
	}
}

// Others write to the object, so that the handler must be called again, and the cycle does not end after all.
func TestConditionsForgetTheNextCycleIfAHandlerIsRetried(t *testing.T) {
	f := newFixture(t, generation)
	f.changedMeanwhile()
	c := f.due("fn", "other")
	succeed(c, "fn", "other")
	p := &patch.Patch{}
	p.Set("x", "status", "result")
	p.Apply(func(obj *unstructured.Unstructured) error {
		if len(obj.GetLabels()) > 0 {
			return errors.New("there is a label")
		}
		return nil
	})
	f.state.Add(call.Edit{ID: "fn", Patch: p, Revise: func(err error) call.Outcome {
		return call.Outcome{Called: true, Err: err, Delay: time.Minute}
	}})
	for _, value := range []string{"x", "y"} {
		f.faults = append(f.faults, fault{before: func() { f.change(m{"metadata": m{"labels": m{"of-others": value}}}) }})
	}
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expectSent("PATCH status, GET, PATCH, GET, PATCH status, PATCH")
	f.expect("said", f.ready(), "HandlersRunning")
}

func TestConditionsAreWrittenToAStatusThatIsNoSubresource(t *testing.T) {
	f := newFixture(t, generation)
	f.server.statusSubresource, f.target.StatusSubresource = false, false
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: f.saying(c)})
	f.expectSent("PATCH")
	f.expect("said", f.ready(), "Reconciled")
	f.expect("events", len(f.events), 0)
}

func TestTheEndOfACycleSetsItsAnnotations(t *testing.T) {
	marking := func(f *fixture, c *record.Cycle) plan.Decision {
		return plan.Decision{Marks: f.decided(c).Marks, Annotations: map[string]string{"always": "x"}}
	}
	tests := map[string]struct {
		annotations m
		cycle       func(f *fixture) *record.Cycle
		want        any
	}{
		"the cycle ends":       {nil, func(f *fixture) *record.Cycle { return f.finished(cause.Create, "fn") }, `{"done":{"fn":"2"}}`},
		"the cycle stays open": {nil, func(f *fixture) *record.Cycle { return f.cycle(cause.Create, "fn") }, nil},
		"the cycle stays open for another handler": {nil, func(f *fixture) *record.Cycle {
			c := f.cycle(cause.Create, "fn", "other")
			succeed(c, "fn")
			return c
		}, nil},
		"its handler is failed": {nil, func(f *fixture) *record.Cycle {
			f.edit("fn", set("x", "spec", "bad"))
			return f.finished(cause.Create, "fn")
		}, `{"failed":{"fn":"2"}}`},
		"it was marked before": {m{"mark": `{"done":{"fn":"2"}}`}, func(f *fixture) *record.Cycle { return f.finished(cause.Create, "fn") }, `{"done":{"fn":"2"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{"annotations": test.annotations})
			f.rejects = func(object m) error {
				if spec, _ := object["spec"].(m); spec["bad"] != nil {
					return answer(http.StatusUnprocessableEntity)
				}
				return nil
			}
			c := test.cycle(f)
			f.write(Update{Cycle: c, Decision: marking(f, c)})
			f.expect("mark", f.field("metadata", "annotations", "mark"), test.want)
			f.expect("always", f.field("metadata", "annotations", "always"), "x")
		})
	}
	f := newFixture(t, m{})
	c := f.finished(cause.Create, "fn")
	f.edit("event", set("x", "spec", "event"))
	f.faults = []fault{{before: func() { // another operator ends the cycle first
		f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
			return records.End(f.t.Context(), &record.Cycle{Reason: cause.Create, New: records.Essence(body, nil), Progress: f.cycle(cause.Create).Progress}, body, into, f.report)
		})
	}}}
	f.write(Update{Cycle: c, Decision: marking(f, c)})
	f.expect("what is set", []any{f.field("spec", "event"), f.field("metadata", "annotations", "always"), f.field("metadata", "annotations", "mark")}, []any{"x", "x", nil})
}
