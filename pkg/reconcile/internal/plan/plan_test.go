package plan

import (
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/record"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The API server rejects a new finalizer on an object that is being deleted.
func TestFinalizerIsAddedWhereItIsNeededAndPossible(t *testing.T) {
	tests := map[string]struct {
		plan Plan
		want bool
	}{
		"it is missing":               {Plan{NeedsFinalizer: true}, true},
		"it is there":                 {Plan{NeedsFinalizer: true, HasFinalizer: true}, false},
		"it is not needed":            {Plan{}, false},
		"the object is being deleted": {Plan{NeedsFinalizer: true, Deleting: true}, false},
	}
	for name, test := range tests {
		if got := test.plan.MustAddFinalizer(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestHandlersHaveWorkOnlyInAnOpenCycle(t *testing.T) {
	tests := map[string]struct {
		reason        cause.Reason
		inScope, work bool
	}{
		"a change of an object in scope": {cause.Update, true, true},
		"no handler applies":             {cause.Update, false, false},
		"nothing has happened":           {cause.NoOp, true, false},
	}
	for name, test := range tests {
		progress := call.NewProgress(func(string) *storage.Record { return nil })
		p := Plan{Cause: handler.Cause{Reason: test.reason}, InScope: test.inScope, Cycle: &record.Cycle{Progress: progress}}
		progress.Include("a", cause.Update, false)
		if p.NothingToDo() == test.work || p.IsOpen("a") != test.work || p.IsOpen("b") {
			t.Errorf("%s: nothing to do: %t; the handler is open: %t, another one: %t", name, p.NothingToDo(), p.IsOpen("a"), p.IsOpen("b"))
		}
	}
}

// Resume handlers are called along with those of a change; any other record is about an earlier change.
func TestOnlyRecordsOfResumeHandlersCountForOtherChanges(t *testing.T) {
	update, resume := &handler.Declaration{ID: "update", Kind: handler.OnUpdate}, &handler.Declaration{ID: "resume", Kind: handler.OnResume}
	tests := map[string]struct {
		reason, purpose cause.Reason
		handler         *handler.Declaration
		want            bool
		open            bool // the handler has not finished
	}{
		"the handler has finished in this cycle":       {cause.Update, cause.Update, update, true, false},
		"the handler has finished in an earlier cycle": {cause.Update, cause.Create, update, false, false},
		"the resume handler has finished earlier":      {cause.Update, cause.Resume, resume, true, false},
		"the resume handler, before a deletion":        {cause.Delete, cause.Resume, resume, false, false},
		"the resume handler has not finished":          {cause.Update, cause.Resume, resume, false, true},
	}
	for name, test := range tests {
		progress := call.NewProgress(func(string) *storage.Record {
			return &storage.Record{Purpose: test.purpose, Success: !test.open, Started: time.Now(), Stopped: time.Now()}
		})
		p := Plan{Cause: handler.Cause{Reason: test.reason}, Cycle: &record.Cycle{Progress: progress}}
		if got := p.HasFinished(test.handler); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
		progress.Include(test.handler.ID, p.Reason, p.KeepsRecord(test.handler))
		if got := progress.Load(test.handler.ID).Finished(); got != test.want {
			t.Errorf("%s: it is not called: %t", name, got)
		}
	}
}
