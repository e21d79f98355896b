package record

import (
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// endsAtBase returns a cycle that is about to end, with the same base as the next one: x has ended
// at the base, because the change was taken back meanwhile, and y ends at a later state.
func endsAtBase(t *testing.T, progress storage.Progress) (*fixture, *Cycle) {
	f := newFixture(t)
	if progress != nil {
		f.Storages.Progress = progress
	}
	attempt := func(size int64, id string, o call.Outcome) *Cycle {
		f.resize(size)
		c := f.cycle(cause.Update, "x", "y")
		c.Progress.Load(id).Retries++
		c.Progress.Revise(id, o)
		return c
	}
	created := f.cycle(cause.Create)
	f.end(created)
	f.store(attempt(2, "x", call.Outcome{Delay: time.Hour, Err: errors.New("not yet")}))
	f.store(attempt(1, "x", call.Outcome{Final: true}))
	return f, attempt(3, "y", call.Outcome{Final: true})
}

func TestACycleContinuesUntilItHasEnded(t *testing.T) {
	kopfEnds := func(f *fixture, _ *Cycle) { // it does not know the annotation of the open cycle
		for _, id := range []string{"x", "y"} {
			f.apply(func(into storage.Patch) error { return f.Storages.Progress.Purge(t.Context(), f.body, into, id) })
		}
	}
	rerun := func(_ *fixture, c *Cycle) {
		c.Progress.Rerun("x", cause.Update)
		c.Progress.Rerun("y", cause.Update)
	}
	rebase := func(f *fixture, _ *Cycle) {
		f.apply(func(into storage.Patch) error {
			return f.Storages.DiffBase.Store(t.Context(), f.body, into, f.Essence(f.body, nil))
		})
	}
	put := func(change func(r *storage.Record)) func(*fixture, *Cycle) {
		return func(f *fixture, c *Cycle) {
			for _, id := range []string{"x", "y"} {
				r := *c.Progress.Load(id).Stored()
				change(&r)
				f.put(id, r)
			}
		}
	}
	tests := map[string]struct {
		others   func(f *fixture, c *Cycle)
		inStatus bool
		want     bool
	}{
		"nothing has happened":                {func(*fixture, *Cycle) {}, false, true},
		"the object has changed":              {func(f *fixture, _ *Cycle) { f.resize(4) }, false, true},
		"the outcomes are stored":             {func(f *fixture, c *Cycle) { f.store(c) }, false, true},
		"Kopf has rewritten the records":      {put(func(r *storage.Record) { r.Cycle = "" }), false, true},
		"it has ended":                        {func(f *fixture, c *Cycle) { f.end(c) }, false, false},
		"it has ended, records in the status": {func(f *fixture, c *Cycle) { f.end(c) }, true, false},
		"it has ended halfway":                {func(f *fixture, c *Cycle) { f.endHalfway(c) }, true, false},
		"another one has begun":               {put(func(r *storage.Record) { r.Started = r.Started.Add(time.Second) }), false, false},
		"its records are gone": {func(f *fixture, c *Cycle) {
			f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), c, f.body, into) })
		}, false, false},
		"the records are gone, in the status": {func(f *fixture, c *Cycle) {
			f.apply(func(into storage.Patch) error { return f.Purge(t.Context(), c, f.body, into) })
		}, true, false},
		"its base is another one": {func(f *fixture, _ *Cycle) {
			f.end(&Cycle{Reason: cause.Resume, New: f.Essence(f.body, nil), Progress: f.progress()})
		}, false, false},
		"its base is another one, and its records are left": {rebase, false, false},
		"Kopf has ended it":                          {kopfEnds, false, false},
		"its handlers are called again by a request": {rerun, false, true},
		"their new records are stored already": {func(f *fixture, c *Cycle) {
			rerun(f, c)
			f.store(c)
		}, false, true},
		"nothing has happened, in the status":    {func(*fixture, *Cycle) {}, true, true},
		"the outcomes are stored, in the status": {func(f *fixture, c *Cycle) { f.store(c) }, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var progress storage.Progress
			if test.inStatus {
				progress = storage.StatusProgress{}
			}
			f, c := endsAtBase(t, progress)
			test.others(f, c)
			got, err := f.Keeper.Continues(t.Context(), c, f.body, f.report)
			if f.must(err); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestACycleWithoutRecordsContinues(t *testing.T) {
	f := newFixture(t)
	c := f.cycle(cause.Create, "x")
	if got, err := f.Keeper.Continues(t.Context(), c, f.body, f.report); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// Records keep the tokens that an operator with another storage of the base has given them.
func TestACycleContinuesInAStorageWithoutCycles(t *testing.T) {
	f, c := endsAtBase(t, nil)
	f.Storages.DiffBase = plainBase{f.Storages.DiffBase}
	if got, err := f.Keeper.Continues(t.Context(), c, f.body, f.report); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
