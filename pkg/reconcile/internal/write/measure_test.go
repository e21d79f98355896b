package write

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

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
		"leftover records":            {Update{Decision: plan.Decision{Leftovers: done}}, "", metrics.Cleanup},
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
