package write

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errStorage = errors.New("the storage does not work")

// failingProgress and failingBase fail in some calls.
type failingProgress struct {
	storage.Progress

	fetch, store, purge error
	only                string // the handler whose record cannot be read; "": all
	fetches             *int   // counts down to the only call of Fetch that fails; nil: all do
}

func (p failingProgress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	if p.fetches != nil {
		*p.fetches--
	}
	if p.fetch != nil && (p.only == "" || p.only == id) && (p.fetches == nil || *p.fetches == 0) {
		return nil, p.fetch
	}
	return p.Progress.Fetch(ctx, body, id)
}

func (p failingProgress) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, r *storage.Record) error {
	return errors.Join(p.store, p.Progress.Store(ctx, body, into, id, r))
}

func (p failingProgress) Purge(ctx context.Context, body *object.Body, into storage.Patch, id string) error {
	return errors.Join(p.purge, p.Progress.Purge(ctx, body, into, id))
}

type failingBase struct {
	storage.DiffBase

	fetch, store error
}

func (b failingBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	if b.fetch != nil {
		return nil, b.fetch
	}
	return b.DiffBase.Fetch(ctx, body)
}

func (b failingBase) Store(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) error {
	return errors.Join(b.store, b.DiffBase.Store(ctx, body, into, essence))
}

// Storages of users can fail. A later pass then writes the update. As after every failure, the
// object is read.
func TestAFailingStorageLosesNothing(t *testing.T) {
	conflict := func(f *fixture) { f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}} }
	none := func(*fixture) {}
	tests := map[string]struct {
		progress failingProgress
		base     failingBase
		begin    func(f *fixture)
		finished bool
		sent     string
	}{
		"the base cannot be read after a conflict":     {base: failingBase{fetch: errStorage}, begin: conflict, finished: true, sent: "PATCH, GET, GET"},
		"the records cannot be read after a conflict":  {progress: failingProgress{fetch: errStorage}, begin: conflict, sent: "PATCH, GET, GET"},
		"the records of an open cycle cannot be added": {progress: failingProgress{store: errStorage}, begin: none, sent: ""},
		"the base cannot be added":                     {base: failingBase{store: errStorage}, begin: none, finished: true, sent: ""},
		"the records cannot be removed":                {progress: failingProgress{purge: errStorage}, begin: none, finished: true, sent: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, m{})
			working := f.writer.Records.Storages
			c := f.cycle(cause.Create, "a", "b", "c")
			succeed(c, "a", "b")
			if test.finished {
				succeed(c, "c")
			}
			f.edit("a", set("x", "spec", "a"))
			f.edit("b", set("x", "spec", "b"))
			test.begin(f)
			test.progress.Progress, test.base.DiffBase = working.Progress, working.DiffBase
			f.writer.Records.Storages.Progress, f.writer.Records.Storages.DiffBase = test.progress, test.base
			if err := f.writeFails(Update{Cycle: c}); !errors.Is(err, errStorage) {
				t.Errorf("got %v", err)
			}
			f.expectSent(test.sent)
			f.expect("finished", len(f.done), 0)

			f.writer.Records.Storages = working
			f.expect("ended", f.flush().Ended, test.finished)
			f.expect("edits", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", "x"})
			f.expect("finished", f.done, map[string]int{"a": 1, "b": 1})
		})
	}
}

// Each of the reads after a conflict can fail, and ends the pass.
func TestAStorageThatFailsOnceLosesNothing(t *testing.T) {
	for n := 1; ; n++ {
		f := newFixture(t, m{})
		working := f.writer.Records.Storages
		f.write(Update{Cycle: f.cycle(cause.Create, "a", "b", "c")})
		f.refresh(f.cached())
		c := f.cycle(cause.Create, "a", "b", "c")
		for _, id := range []string{"a", "b"} {
			c.Progress.Load(id).Retries = 1
			c.Progress.Revise(id, call.Outcome{Final: true})
			f.edit(id, set("x", "spec", id))
		}
		f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
		fetches := n
		f.writer.Records.Storages.Progress = failingProgress{Progress: working.Progress, fetch: errStorage, fetches: &fetches}
		_, err := f.Write(t.Context(), Update{Cycle: c})
		if fetches > 0 {
			f.expect("reads", n-1, 7)
			return
		}
		if !errors.Is(err, errStorage) {
			t.Fatalf("read %d: got %v", n, err)
		}
		f.expect("finished", len(f.done), 0)
		f.writer.Records.Storages = working
		f.flush()
		f.expect("edits", []any{f.field("spec", "a"), f.field("spec", "b")}, []any{"x", "x"})
		f.expect("finished", f.done, map[string]int{"a": 1, "b": 1})
	}
}

// Whether a record of a sub-handler is kept after a conflict depends on that of its parent.
func TestAFailingStorageOfTheParentLosesNothing(t *testing.T) {
	f := newFixture(t, m{})
	working := f.writer.Records.Storages
	f.write(Update{Cycle: f.cycle(cause.Create, "parent")})
	f.refresh(f.cached())
	c := f.cycle(cause.Create, "parent", "parent/x")
	c.Declared = []string{"parent"}
	f.edit("parent/x", set("x", "spec", "x"))
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
	f.writer.Records.Storages.Progress = failingProgress{Progress: working.Progress, fetch: errStorage, only: "parent"}
	if err := f.writeFails(Update{Cycle: c}); !errors.Is(err, errStorage) {
		t.Errorf("got %v", err)
	}
	f.writer.Records.Storages = working
	f.flush()
	f.expect("edit", f.field("spec", "x"), "x")
}

func TestFailingStorageOfStaleRecordsIsReported(t *testing.T) {
	f := newFixture(t, m{})
	stale := f.cycle(cause.NoOp, "a")
	f.writer.Records.Storages.Progress = failingProgress{Progress: settings.Settings{}.WithDefaults().Persistence.Progress, purge: errStorage}
	if err := f.writeFails(Update{Decision: plan.Decision{StaleRecords: stale}}); !errors.Is(err, errStorage) {
		t.Errorf("got %v", err)
	}
	f.expectSent("")
}

func TestADecisionThatFailsIsMadeAgainInALaterPass(t *testing.T) {
	f := newFixture(t, m{})
	failure := errStorage
	u := Update{Cycle: f.finished(cause.Create, "a"), Decide: func(context.Context, *object.Body) (plan.Decision, error) { return plan.Decision{}, failure }}
	f.faults = []fault{{before: func() { f.change(m{"spec": m{"size": int64(2)}}) }}}
	if err := f.writeFails(u); !errors.Is(err, errStorage) {
		t.Errorf("got %v", err)
	}
	f.expectSent("PATCH, GET")
	f.refresh(f.cached())
	if _, err := f.Flush(t.Context()); !errors.Is(err, errStorage) {
		t.Errorf("got %v", err)
	}
	f.expectSent("")
	failure = nil
	f.expect("ended", f.flush().Ended, true)
}
