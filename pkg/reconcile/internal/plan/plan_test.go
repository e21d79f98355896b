package plan

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/index"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/selector"
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

// The fields that handlers name belong to the essence, except those of indices.
func TestFieldsOfHandlersBelongToTheEssence(t *testing.T) {
	var r registry.Registry
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	field := handler.Field("status.phase") // twice, but counted once
	r.Add(handler.Create(kexes, fn, handler.ID("c")))
	r.Add(handler.Update(kexes, fn, handler.ID("u"), field))
	r.Add(handler.ForField(kexes, []string{"status.phase"}, fn, handler.ID("f")))
	r.Add(handler.Watch(kexes, fn, handler.ID("w"), handler.Field("status.event")))
	r.Add(handler.Daemon(kexes, fn, handler.ID("d"), handler.Field("status.daemon")))
	r.Add(handler.Timer(kexes, fn, handler.ID("t"), handler.Field("status.timer")))
	r.Add(handler.Index(kexes, handlertest.Filling(index.New[string, string](), func(context.Context, *handler.Call) (any, error) { return nil, nil }), handler.ID("i"), handler.Field("status.index")))
	all, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	sorted := Sort(all)
	var fields []string
	for _, field := range sorted.Fields {
		fields = append(fields, field.String())
	}
	if want := []string{"status.phase", "status.event", "status.daemon", "status.timer"}; !slices.Equal(fields, want) {
		t.Errorf("got %q, want %q", fields, want)
	}
	if len(sorted.Changing) != 3 || len(sorted.IDs) != 3 || len(sorted.Background) != 2 || len(sorted.Declared) != 7 {
		t.Errorf("got %+v", sorted)
	}
}

// The handlers that are left out have fields and records nevertheless.
func TestHandlersAreSortedByWhatTheyAreFor(t *testing.T) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	var r registry.Registry
	r.Add(handler.ForConditions(kexes, nil))
	ordered(&r)
	daemons(&r)
	r.Add(handler.ForField(kexes, []string{"status.phase"}, fn, handler.ID("field")))
	r.Add(handler.Timer(kexes, fn, handler.ID("nightly"), handler.Scheduled("0 3 * * *")))
	r.Add(handler.Child(kexes, selector.New("v1", "pods"), fn, handler.ID("child")))
	all, err := r.Handlers(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := Sort(all)
	if !h.HasConditions || !slices.Equal(IDsOf(h.Triggered), []string{"child"}) || !slices.EqualFunc(h.Sequences, [][]string{{"next", "update"}}, slices.Equal) {
		t.Errorf("got %+v", h)
	}
	if got := RunsOf(h.Background); !slices.Equal(got, []string{record.RunOf("nightly")}) {
		t.Errorf("got %q", got)
	}
	rest := h.Only(func(d *handler.Declaration) bool { return d.ID == "create" })
	if got := IDsOf(rest.Changing); !slices.Equal(got, []string{"create"}) || len(rest.Background) > 0 {
		t.Errorf("got %q", got)
	}
	if len(rest.Declared) != len(all) || !slices.Equal(rest.IDs, h.IDs) || len(rest.Fields) != 1 || !rest.HasConditions {
		t.Errorf("got %+v", rest)
	}
	if Sort(all.OfKind(handler.OnCreate)).HasConditions {
		t.Error("the conditions are left out, too")
	}
}
