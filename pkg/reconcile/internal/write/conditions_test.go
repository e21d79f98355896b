package write

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// saying returns conditions that say a text about the cycle, and note when they were asked.
func saying(c *record.Cycle, asked *[]string) ConditionsFunc {
	return func(stored, edited m, continues bool) m {
		text := fmt.Sprintf("failed: %t, continues: %t", c.Progress.Load("fn").Failure, continues)
		*asked = append(*asked, text)
		return patch.Minimal(edited, m{"status": m{"condition": text}})
	}
}

func TestConditionsAreWrittenWithTheStatus(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	f.edit("fn", set("done", "status", "result"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expectSent("PATCH status, PATCH")
	f.expect("status", f.field("status"), m{"condition": "failed: false, continues: false", "result": "done"})
	f.expect("base", f.storedBase() != nil, true)

	f.refresh(f.cached())
	f.write(Update{Decision: Decision{Conditions: saying(c, &asked)}})
	f.expectSent("") // they say the same
}

func TestConditionsAreDecidedAgainAfterARejection(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	f.rejects = func(object m) error {
		if spec, _ := object["spec"].(m); spec["bad"] != nil {
			return answer(http.StatusUnprocessableEntity)
		}
		return nil
	}
	f.edit("fn", set("x", "spec", "bad"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expect("status", f.field("status", "condition"), "failed: true, continues: false")
	f.expect("failed", c.Progress.Load("fn").Failure, true)
}

func TestConditionsThatAreRejectedFailNoHandler(t *testing.T) {
	for name, rejection := range map[string]error{"for good": answer(http.StatusUnprocessableEntity), "without an answer to the question": errDown} {
		t.Run(name, func(t *testing.T) {
			f, asked := newFixture(t, m{}), []string(nil)
			f.rejects = func(object m) error {
				if status, _ := object["status"].(m); status["condition"] == nil {
					return nil
				}
				if len(f.requests) > 1 {
					return rejection
				}
				return answer(http.StatusUnprocessableEntity)
			}
			f.edit("fn", set("done", "status", "result"))
			c := f.finished(cause.Create, "fn")
			u := Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}}
			if errors.Is(rejection, errDown) {
				f.expect("unanswered", errors.Is(f.writeFails(u), errDown), true)
				f.expectSent("PATCH status, DRYRUN status") // nothing else is asked
				f.rejects = nil
				f.flush()
				f.expect("status", f.field("status"), m{"condition": "failed: false, continues: false", "result": "done"})
				return
			}
			f.write(u)
			f.expect("status", f.field("status"), m{"result": "done"})
			f.expect("failed", c.Progress.Load("fn").Failure, false)
			f.expect("events", len(f.events) == 1 && strings.HasPrefix(f.events[0], "ConditionsRefused: "), true)
			f.requests = nil
			f.refresh(f.cached())
			f.write(Update{Decision: Decision{Conditions: saying(c, &asked)}})
			f.expectSent("") // they are not tried again
		})
	}
}

// Conditions are not blamed for what a handler writes to the status.
func TestConditionsAreWrittenBesideARejectedStatus(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	f.rejects = rejecting(http.StatusUnprocessableEntity, "status", "bad")
	f.edit("fn", set("x", "status", "bad"))
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expect("status", f.field("status"), m{"condition": "failed: true, continues: false"})
}

// Conditions are written before the records, but not if the records cannot be.
func TestConditionsAreNotWrittenWithoutRecords(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	c := f.finished(cause.Create, "fn")
	f.writer.Records.Storages.DiffBase = failingBase{DiffBase: f.writer.Records.Storages.DiffBase, store: errStorage}
	err := f.writeFails(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expect("error", errors.Is(err, errStorage), true)
	f.expectSent("GET")
}

func TestConditionsThatAreDroppedAreGivenUp(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	f.prunesStatus = true
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expect("refused", f.report.Object.Has(conditionsRefused), true)
	f.expect("base", f.storedBase() != nil, true)
}

// The conditions are written before the records, so they must know whether another cycle
// follows.
func TestConditionsForeseeTheNextCycle(t *testing.T) {
	tests := map[string]struct {
		prepare func(f *fixture, c *record.Cycle)
		want    string
	}{
		"nothing follows": {func(*fixture, *record.Cycle) {}, "failed: false, continues: false"},
		"the handler has changed the object": {
			func(f *fixture, _ *record.Cycle) { f.edit("fn", set("x", "spec", "color")) },
			"failed: false, continues: true",
		},
		"the object has changed during the cycle": {func(f *fixture, c *record.Cycle) {
			first := storage.Patch{}
			kept := &storage.Cycle{Token: "4711", First: object.Essence{"spec": m{"size": int64(0)}}}
			storages, _ := f.writer.Records.Storages.DiffBase.(storage.CycleBase)
			if err := storages.StoreCycle(f.t.Context(), f.body, first, kept); err != nil {
				f.t.Fatal(err)
			}
			f.change(patch.ApplyMerge(first, m{"metadata": m{"annotations": m{"kopf.zalando.org/other": `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create","success":true,"cycle":"4711"}`}}}))
			f.refresh(f.cached())
		}, "failed: false, continues: true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, asked := newFixture(t, m{}), []string(nil)
			test.prepare(f, nil)
			c := f.finished(cause.Create, "fn", "other")
			c.Declared, c.IsDue = []string{"fn", "other"}, func(string, object.Essence, object.Essence) bool { return true }
			f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
			f.expect("said", asked[0], test.want)
		})
	}
}

func TestConditionsAreWrittenToAStatusThatIsNoSubresource(t *testing.T) {
	f, asked := newFixture(t, m{}), []string(nil)
	f.server.statusSubresource, f.target.StatusSubresource = false, false
	c := f.finished(cause.Create, "fn")
	f.write(Update{Cycle: c, Decision: Decision{Conditions: saying(c, &asked)}})
	f.expectSent("PATCH")
	f.expect("status", f.field("status"), m{"condition": "failed: false, continues: false"})
	f.expect("events", len(f.events), 0)
}

func TestTheEndOfACycleSetsItsAnnotations(t *testing.T) {
	mark := func(c *record.Cycle) func() map[string]string {
		return func() map[string]string { return map[string]string{"mark": fmt.Sprint(c.Progress.Load("fn").Failure)} }
	}
	always := map[string]string{"always": "x"}
	tests := map[string]struct {
		cycle func(f *fixture) *record.Cycle
		want  any
	}{
		"the cycle ends":       {func(f *fixture) *record.Cycle { return f.finished(cause.Create, "fn") }, "false"},
		"the cycle stays open": {func(f *fixture) *record.Cycle { return f.cycle(cause.Create, "fn") }, nil},
		"its handler is failed": {func(f *fixture) *record.Cycle {
			f.edit("fn", set("x", "spec", "bad"))
			return f.finished(cause.Create, "fn")
		}, "true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			f.rejects = func(object m) error {
				if spec, _ := object["spec"].(m); spec["bad"] != nil {
					return answer(http.StatusUnprocessableEntity)
				}
				return nil
			}
			c := test.cycle(f)
			f.write(Update{Cycle: c, Decision: Decision{AtEnd: mark(c), Annotations: always}})
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
	f.write(Update{Cycle: c, Decision: Decision{AtEnd: mark(c), Annotations: always}})
	f.expect("what is set", []any{f.field("spec", "event"), f.field("metadata", "annotations", "always"), f.field("metadata", "annotations", "mark")}, []any{"x", "x", nil})

	none := Decision{AtEnd: func() map[string]string { return nil }, Annotations: always}
	if got := none.annotations(true); got["always"] != "x" {
		t.Errorf("got %v", got)
	}
}
