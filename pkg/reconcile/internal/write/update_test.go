package write

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestAnUnneededFinalizerIsRemovedWithoutACycle(t *testing.T) {
	tests := map[string]struct {
		metadata m
		left     any
		sent     string
	}{
		"ours alone":               {m{"finalizers": []any{ours}}, []any{}, "PATCH"},
		"ours and another":         {m{"finalizers": []any{theirs, ours}}, []any{theirs}, "PATCH"},
		"another":                  {m{"finalizers": []any{theirs}}, []any{theirs}, ""},
		"none":                     {m{}, nil, ""},
		"another, and it is going": {deleting(theirs), []any{theirs}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.metadata)
			outcome := f.write(Update{Decision: plan.Decision{RemoveFinalizer: true}})
			f.expectSent(test.sent)
			f.expect("gone", outcome.Gone || f.state.Gone(), false)
			f.expect("finalizers", f.field("metadata", "finalizers"), test.left)
		})
	}
}

// The API server rejects new finalizers on an object that is marked for deletion.
func TestAFinalizerIsNotAddedDuringADeletion(t *testing.T) {
	f := newFixture(t, m{})
	f.faults = []fault{{before: func() { f.change(m{"metadata": deleting(theirs)}) }}}
	f.write(Update{Decision: plan.Decision{AddFinalizer: true}})
	f.expectSent("PATCH, GET")
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{theirs})
}

func TestOnlyADeletionIsHeldByAFailure(t *testing.T) {
	f := newFixture(t, m{"finalizers": []any{ours}})
	c := f.finished(cause.Update, "a")
	c.HoldOnFailure = []string{"a"}
	c.FailHandler("a", errDown)
	f.write(Update{Cycle: c, Decision: plan.Decision{RemoveFinalizer: true}})
	f.expect("finalizers", f.field("metadata", "finalizers"), []any{})
}

// The object is marked for deletion, but waits for this operator.
func TestAChangeIsWrittenToAnObjectThatWaitsForTheOperator(t *testing.T) {
	f := newFixture(t, m{"finalizers": []any{ours}})
	f.faults = []fault{{before: func() { f.change(m{"metadata": deleting(ours)}) }}}
	f.edit("a", set("x", "spec", "a"))
	f.expect("ended", f.write(Update{Cycle: f.finished(cause.Create, "a")}).Ended, true)
	f.expect("edit", f.field("spec", "a"), "x")
}

func TestTheWriteThatDeletesAnObjectContainsOnlyItsFinalizer(t *testing.T) {
	f := newFixture(t, deleting(ours))
	f.otherOperator(func(records record.Keeper, body *object.Body, into storage.Patch) error {
		return records.Storages.Progress.Store(t.Context(), body, into, "a", &storage.Record{Started: time.Now(), Purpose: cause.Delete})
	})
	f.refresh(f.cached())
	f.edit("a", set("x", "spec", "a"))
	f.write(Update{
		Cycle:    f.finished(cause.Delete, "a"),
		Decision: plan.Decision{RemoveFinalizer: true, Annotations: map[string]string{"example.com/honored": "1"}},
	})
	f.expect("patch", f.requests[0].patch, m{"metadata": m{"finalizers": []any{}, "resourceVersion": "8"}})
}

func TestAResultIsStoredInTheStatusByTheNameOfItsHandler(t *testing.T) {
	f := newFixture(t, m{})
	f.state.Add(call.Edit{ID: "a", Patch: &patch.Patch{}, Result: "x"})
	f.write(Update{})
	f.expect("result", f.field("status", "a"), "x")
}

func TestAResultDoesNotChangeThePatchOfItsHandler(t *testing.T) {
	merge := m{"status": m{"phase": "x"}}
	with := withResult(merge, "a", "y")
	if !object.Equal(with, m{"status": m{"phase": "x", "a": "y"}}) || !object.Equal(merge, m{"status": m{"phase": "x"}}) {
		t.Errorf("got %v, and the patch is %v", with, merge)
	}
}

func TestReasonOfAWrite(t *testing.T) {
	none := func(string) *storage.Record { return nil }
	done, waiting := &record.Cycle{Progress: call.NewProgress(none)}, &record.Cycle{Progress: call.NewProgress(none)}
	waiting.Progress.Include("one", cause.Create, false)
	tests := map[string]struct {
		update      Update
		subresource string
		want        metrics.Reason
	}{
		"a result":                    {Update{Cycle: waiting}, "status", metrics.Status},
		"stale records":               {Update{Decision: plan.Decision{StaleRecords: done}}, "", metrics.Cleanup},
		"all handlers are done":       {Update{Cycle: done}, "", metrics.Handled},
		"a daemon is still running":   {Update{Cycle: done, Decision: plan.Decision{DaemonsRunning: true}}, "", metrics.Progress},
		"some handlers are done":      {Update{Cycle: waiting}, "", metrics.Progress},
		"a call outside of a cycle":   {Update{Calls: calling(waiting, "one")}, "", metrics.Progress},
		"the edits of such a call":    {Update{Calls: calling(waiting)}, "", metrics.Patch},
		"the finalizer":               {Update{Decision: plan.Decision{AddFinalizer: true}}, "", metrics.Finalizer},
		"the finalizer is not needed": {Update{Decision: plan.Decision{RemoveFinalizer: true}}, "", metrics.Finalizer},
		"edits of event handlers":     {Update{}, "", metrics.Patch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.update.reason(test.subresource); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAnswersOfTheServer(t *testing.T) {
	kind := schema.GroupResource{Resource: "kexes"}
	tests := map[string]struct {
		err  error
		want metrics.Answer
	}{
		"it was written":       {nil, metrics.Written},
		"others were faster":   {apierrors.NewConflict(kind, "a", errors.New("changed")), metrics.Conflict},
		"the content is wrong": {apierrors.NewBadRequest("no"), metrics.Rejected},
		"there was no answer":  {context.DeadlineExceeded, metrics.Unanswered},
		"the object is gone":   {apierrors.NewNotFound(kind, "a"), metrics.Unanswered},
		"the server fails":     {apierrors.NewInternalError(errors.New("disk")), metrics.Unanswered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := answerOf(test.err); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestEveryWriteIsCounted(t *testing.T) {
	f := newFixture(t, m{})
	registry := prometheus.NewRegistry()
	counted, err := metrics.New(registry, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := counted.Open(); err != nil {
		t.Fatal(err)
	}
	f.writer.Metrics = counted
	f.rejects = rejecting(http.StatusUnprocessableEntity, "spec", "bad")
	f.edit("a", set("x", "spec", "bad"))
	f.write(Update{Cycle: f.finished(cause.Create, "a")})
	f.expectSent("PATCH, DRYRUN, DRYRUN, DRYRUN, PATCH")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	f.expect("count", total, 5)
}
