package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestFinalizerIsRemovedWhenNothingNeedsIt(t *testing.T) {
	of := func(ids ...string) (handlers registry.Handlers) {
		for _, id := range ids {
			handlers = append(handlers, &handler.Declaration{ID: id})
		}
		return handlers
	}
	tests := map[string]struct {
		reason cause.Reason
		now    Plan
		want   bool
	}{
		"an update, and no handler needs it":             {cause.Update, Plan{HasFinalizer: true}, true},
		"an update, and a handler needs it":              {cause.Update, Plan{HasFinalizer: true, NeedsFinalizer: true}, false},
		"an update of an object without it":              {cause.Update, Plan{}, false},
		"a deletion, and all handlers have finished":     {cause.Delete, Plan{HasFinalizer: true, NeedsFinalizer: true, Handlers: of("finished")}, true},
		"a deletion, and another handler matches now":    {cause.Delete, Plan{HasFinalizer: true, Handlers: of("finished", "finished earlier")}, false},
		"a deletion, and a handler has not finished":     {cause.Delete, Plan{HasFinalizer: true, Handlers: of("finished", "open")}, false},
		"a deletion, and others have removed it already": {cause.Delete, Plan{Handlers: of("finished")}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Cause: handler.Cause{Reason: test.reason}, Cycle: &record.Cycle{}}
			p.Cycle.Progress = call.NewProgress(func(id string) *storage.Record {
				return &storage.Record{Purpose: cause.Delete, Success: strings.HasPrefix(id, "finished")}
			})
			p.Cycle.Progress.Load("finished")
			p.Cycle.Progress.Load("open")
			if got := p.DecideEnd(&test.now, Circumstances{Handlers: &Handlers{}}).RemoveFinalizer; got != test.want {
				t.Errorf("the finalizer is removed: %t", got)
			}
		})
	}
}

// On the version of the detection, the writer knows which handlers have not finished.
func TestDeletionEndsOnTheDetectedVersion(t *testing.T) {
	p := &Plan{Cause: handler.Cause{Reason: cause.Delete}, HasFinalizer: true, NeedsFinalizer: true, Handlers: registry.Handlers{{ID: "open"}}}
	p.Cycle = &record.Cycle{Progress: call.NewProgress(func(string) *storage.Record { return nil })}
	if !p.DecideEnd(p, Circumstances{Handlers: &Handlers{}}).RemoveFinalizer {
		t.Error("the finalizer stays")
	}
}

func TestLeftoversOfObjectsInScopeAreRemoved(t *testing.T) {
	leftover := call.NewProgress(func(string) *storage.Record { return &storage.Record{Purpose: cause.Create, Started: time.Now()} })
	leftover.Load("create")
	tests := map[string]struct {
		plan                 Plan
		finalizer, leftovers bool // to be removed
	}{
		"an object at rest":                     {Plan{InScope: true, Cause: handler.Cause{Reason: cause.NoOp}}, false, true},
		"an object that no handler is for":      {Plan{Cause: handler.Cause{Reason: cause.NoOp}}, false, false},
		"an object that is released":            {Plan{InScope: true, Cause: handler.Cause{Reason: cause.Free}}, false, false},
		"an object with an unneeded finalizer":  {Plan{HasFinalizer: true}, true, false},
		"an object that needs its finalizer":    {Plan{HasFinalizer: true, NeedsFinalizer: true}, false, false},
		"an object that will get its finalizer": {Plan{NeedsFinalizer: true}, false, false},
	}
	for name, test := range tests {
		test.plan.Cycle = &record.Cycle{Progress: leftover}
		d := test.plan.DecideAtRest(Circumstances{Handlers: &Handlers{}})
		if d.RemoveFinalizer != test.finalizer || (d.Leftovers != nil) != test.leftovers {
			t.Errorf("%s: the finalizer is removed: %t, leftovers: %t", name, d.RemoveFinalizer, d.Leftovers != nil)
		}
	}
}
