package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
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

func TestStaleRecordsOfObjectsInScopeAreRemoved(t *testing.T) {
	stale := call.NewProgress(func(string) *storage.Record { return &storage.Record{Purpose: cause.Create, Started: time.Now()} })
	stale.Load("create")
	tests := map[string]struct {
		plan             Plan
		finalizer, stale bool // to be removed
	}{
		"an object at rest":                     {Plan{InScope: true, Cause: handler.Cause{Reason: cause.NoOp}}, false, true},
		"an object that no handler is for":      {Plan{Cause: handler.Cause{Reason: cause.NoOp}}, false, false},
		"an object that is released":            {Plan{InScope: true, Cause: handler.Cause{Reason: cause.Free}}, false, false},
		"an object with an unneeded finalizer":  {Plan{HasFinalizer: true}, true, false},
		"an object that needs its finalizer":    {Plan{HasFinalizer: true, NeedsFinalizer: true}, false, false},
		"an object that will get its finalizer": {Plan{NeedsFinalizer: true}, false, false},
	}
	for name, test := range tests {
		test.plan.Cycle = &record.Cycle{Progress: stale}
		d := test.plan.DecideAtRest(Circumstances{Handlers: &Handlers{}})
		if d.RemoveFinalizer != test.finalizer || (d.StaleRecords != nil) != test.stale {
			t.Errorf("%s: the finalizer is removed: %t, stale: %t", name, d.RemoveFinalizer, d.StaleRecords != nil)
		}
	}
	none := Plan{InScope: true, Cause: handler.Cause{Reason: cause.NoOp}, Cycle: &record.Cycle{Progress: call.NewProgress(func(string) *storage.Record { return nil })}}
	if none.DecideAtRest(Circumstances{Handlers: &Handlers{}}).StaleRecords != nil {
		t.Error("there are no stale records")
	}
}

const marks = "kopf.dev/handled-revisions"

// baseline has a handler that adopts objects under its revision.
func baseline(r *registry.Registry) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	r.Add(handler.Update(kexes, fn, handler.ID("update"), handler.Revision("2"), handler.Baseline()))
}

// A write that ends a cycle marks the revisions under which its handlers have ended on the version that it is
// written to.
func TestTheEndOfACycleMarksRevisions(t *testing.T) {
	same := m{"spec": m{"size": int64(1)}}
	under := func(marked string) m { return m{"annotations": m{marks: marked, "kopf.dev/request-rerun": "1 update"}} }
	tests := map[string]struct {
		handlers func(r *registry.Registry)
		now      m // the object
		deletes  bool
		ends     bool
		want     any
	}{
		"the cycle ends":            {revised, under(`{"done":{"update":"1"}}`), false, true, `{"done":{"update":"2"}}`},
		"the cycle stays open":      {revised, under(`{"done":{"update":"1"}}`), false, false, nil},
		"another version is marked": {revised, under(`{"done":{"update":"2"}}`), false, true, nil},
		"a deletion ends":           {revised, under(`{"done":{"update":"1"}}`), true, true, nil},
		"no handler has a revision": {everything, under(`{"done":{"update":"1"}}`), false, true, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, c := look{handlers: test.handlers, object: under(`{"done":{"update":"1"}}`), base: same}.plan(t)
			now, _ := look{handlers: test.handlers, object: test.now, base: same}.plan(t)
			for _, d := range p.Handlers {
				state := p.Cycle.Progress.Include(d.ID, p.Reason, false)
				state.Success = true
			}
			if test.deletes {
				p.Reason = cause.Delete
			}
			d := p.DecideEnd(now, c)
			got := d.AnnotationsOf(test.ends)
			if fmt.Sprint(got[marks]) != fmt.Sprint(cmp.Or(test.want, any(""))) || got["kopf.dev/requests-handled"] == "" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestObjectsAtRestAreAdopted(t *testing.T) {
	same := m{"spec": m{"size": int64(1)}}
	tests := map[string]struct {
		look look
		want map[string]string
	}{
		"with a baseline":             {look{handlers: baseline, base: same}, map[string]string{marks: `{"done":{"update":"2"}}`}},
		"with a baseline, and marked": {look{handlers: baseline, base: same, object: m{"annotations": m{marks: `{"done":{"update":"2"}}`}}}, nil},
		"without a baseline":          {look{handlers: everything, base: same}, nil},
	}
	for name, test := range tests {
		p, c := test.look.plan(t)
		if got := p.DecideAtRest(c).Annotations; !maps.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
		p.InScope = false
		if got := p.DecideAtRest(c).Annotations; len(got) > 0 {
			t.Errorf("%s: another operator is responsible, but got %q", name, got)
		}
	}
}

func TestOnlyTheEndOfADeletionWaitsForDaemons(t *testing.T) {
	for _, test := range []struct{ deleting, running, want bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		d := (&Plan{}).DecideEnd(&Plan{Deleting: test.deleting}, Circumstances{Handlers: &Handlers{}, DaemonsRunning: test.running})
		if d.DaemonsRunning != test.want {
			t.Errorf("%+v: got %t", test, d.DaemonsRunning)
		}
	}
}

func TestTheEndOfACycleAddsTheFinalizerThatIsMissing(t *testing.T) {
	for _, needs := range []bool{true, false} {
		if d := (&Plan{}).DecideEnd(&Plan{NeedsFinalizer: needs}, Circumstances{Handlers: &Handlers{}}); d.AddFinalizer != needs {
			t.Errorf("got %t, want %t", d.AddFinalizer, needs)
		}
	}
}

// A deletion handler of another version of the resource is not called, so the object must not go.
func TestUnservedHandlersHoldTheDeletion(t *testing.T) {
	p := &Plan{Cause: handler.Cause{Reason: cause.Delete}, HasFinalizer: true, Unserved: true}
	if p.DecideEnd(p, Circumstances{Handlers: &Handlers{}}).RemoveFinalizer {
		t.Error("the finalizer is removed")
	}
}
