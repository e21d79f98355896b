package record

import (
	"context"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/storage"
)

// withoutStatus applies what the first of two writes has of a patch.
func (f *fixture) withoutStatus(put func(into storage.Patch) error) {
	f.t.Helper()
	into := storage.Patch{}
	f.must(put(into))
	main, _ := patch.SplitStatus(into)
	f.change(main)
}

// endHalfway ends a cycle, but dies before the write of the records.
func (f *fixture) endHalfway(c *Cycle) {
	f.t.Helper()
	f.withoutStatus(func(into storage.Patch) error { return f.End(f.t.Context(), c, f.body, into, f.report) })
}

// twoEnds returns a fixture with its records in the status, whose cycle is about to end: a has
// ended at the size of 2, b and its sub-handler at 3, from the base with the size of 1.
func twoEnds(t *testing.T) (*fixture, *Cycle) {
	f := newFixture(t)
	f.Storages.Progress = storage.StatusProgress{}
	f.end(f.cycle(cause.Create))
	f.resize(2)
	c := f.cycle(cause.Update, "a", "b")
	c.Progress.Fail("a", errDown)
	f.store(c)
	f.resize(3)
	c = f.cycle(cause.Update, "a", "b")
	c.Progress.Fail("b", errDown)
	return f, c
}

// The base and the records are stored by two writes. After the first one, the records are those
// of the cycle that has ended.
func TestRecordsOfAnEndedCycleDoNotCount(t *testing.T) {
	f, c := twoEnds(t)
	f.endHalfway(c)
	if !f.progress("a", "b").Stored().HasOpen(cause.Update) {
		t.Error("the next cycle has begun")
	}
	f.resize(4)
	next := f.cycle(cause.Update, "a", "b")
	if got := size(next.Old); got != int64(2) {
		t.Errorf("base: got %v", got)
	}
	if next.Progress.Load("a").Finished() {
		t.Error("a has not seen the change from 2 to 3")
	}
	if !next.Progress.Load("b").Finished() {
		t.Error("b has seen the change from 2 to 3")
	}
	kept := f.kept(next)
	if kept == nil || size(kept.First) != int64(3) || kept.At["b"] != first {
		t.Errorf("got %+v", kept)
	}
	next.Progress.Fail("a", errDown)
	f.end(next)
	base, _, _ := f.Base(t.Context(), f.body, f.report)
	if got := size(base); got != int64(3) {
		t.Errorf("b has not seen the change from 3 to 4: got %v", got)
	}
}

// If the change is taken back meanwhile, whoever has seen it must see that.
func TestTakenBackAfterTheFirstOfTwoWrites(t *testing.T) {
	f, c := twoEnds(t)
	f.endHalfway(c)
	f.resize(2)
	progress := f.progress("a", "b")
	if !progress.Stored().HasOpen(cause.Update) || progress.Stored().HasOpen(cause.Create) {
		t.Error("the next cycle is open")
	}
}

// The base moves, and there is no next cycle: the records are only removed.
func TestRecordsAreStaleAtTheEndOfACycle(t *testing.T) {
	f, c := twoEnds(t)
	c.IsDue = func(string, object.Essence, object.Essence) bool { return false }
	f.endHalfway(c)
	progress := f.progress("a", "b")
	if progress.Stored().HasOpen(cause.Update) || !progress.Stored().HasStale() {
		t.Error("the records are left over, and no cycle is open")
	}
	if len(progress.Stored().IDs()) > 0 || progress.Load("a").Found() == nil {
		t.Error("they are there, and do not count")
	}
	f.apply(func(into storage.Patch) error {
		return f.Purge(t.Context(), &Cycle{Progress: progress}, f.body, into)
	})
	if f.progress("a", "b").Stored().HasStale() {
		t.Error("they are removed")
	}
}

// Records in the same place as the cycle are never left over: one write stores both. A cycle that
// cannot be read, or that has no token yet, does not make its records void either.
func TestRecordsCountWithoutTheirCycle(t *testing.T) {
	for name, damage := range map[string]func(*fixture){
		"in annotations": func(f *fixture) { f.Storages.Progress = newFixture(t).Storages.Progress },
		"in annotations and in the status": func(f *fixture) {
			f.Storages.Progress = storage.MultiProgress{storage.AnnotationsProgress{}, storage.StatusProgress{}}
		},
		"in the same status":  func(f *fixture) { f.Storages.DiffBase = storage.StatusDiffBase{} },
		"not on the object":   func(f *fixture) { f.Storages.Progress = elsewhere{f.Storages.Progress, map[string]*storage.Record{}} },
		"no cycles":           func(f *fixture) { f.Storages.DiffBase = plainBase{f.Storages.DiffBase} },
		"an unreadable cycle": func(f *fixture) { f.change(m{"metadata": m{"annotations": m{startedKey: "{"}}}) },
		"a cycle without a token": func(f *fixture) {
			f.apply(func(into storage.Patch) error {
				return f.cycles().StoreCycle(t.Context(), f.body, into, &storage.Cycle{First: f.Essence(f.body, nil), Since: hourAgo()})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Storages.Progress = storage.StatusProgress{}
			damage(f)
			f.put("a", storage.Record{Purpose: cause.Update, Success: true, Cycle: "7"})
			if !f.progress("a").Stored().HasOpen(cause.Update) {
				t.Error("the record counts")
			}
		})
	}
}

// Another client damages the open cycle. The next end of a handler stores it again, with the records that are there: a handler
// that is retried must not be forgotten, and neither must the records of its sub-handlers.
func TestCycleThatWasDamagedContinues(t *testing.T) {
	l := &line{fixture: newFixture(t), ids: []string{"p", "q"}}
	l.Storages.Progress = storage.StatusProgress{}
	l.pass(1, "p", "q")
	l.pass(2, "p/x", "p?", "q?")
	l.change(m{"metadata": m{"annotations": m{startedKey: "{"}}})
	l.pass(2, "q")
	stored := l.progress("p", "q").Stored()
	if got := stored.IDs(); !slices.Equal(got, []string{"p", "p/x", "q"}) || len(stored.Stale()) > 0 {
		t.Errorf("the records are %q, those of %q do not count", got, stored.Stale())
	}
}

// elsewhere is a storage of records in another place than the object.
type elsewhere struct {
	storage.Progress

	records map[string]*storage.Record
}

func (e elsewhere) Fetch(_ context.Context, _ *object.Body, id string) (*storage.Record, error) {
	return e.records[id], nil
}

func (e elsewhere) Store(_ context.Context, _ *object.Body, _ storage.Patch, id string, r *storage.Record) error {
	e.records[id] = r
	return nil
}

// noting notes for which handlers records are stored.
type noting struct {
	storage.Progress

	ids *[]string
}

func (n noting) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, r *storage.Record) error {
	*n.ids = append(*n.ids, id)
	return n.Progress.Store(ctx, body, into, id, r)
}

// A storage is not tried out to see where it stores: it can be a database, in which the attempt would stay.
func TestOnlyRecordsOfHandlersAreStored(t *testing.T) {
	f, c := open(t)
	c.Progress.Fail("c", errDown)
	var ids []string
	f.Storages.Progress = noting{f.Storages.Progress, &ids}
	f.end(c)
	if !slices.Equal(ids, []string{"b"}) {
		t.Errorf("got records of %q", ids)
	}
	f.cycle(cause.Update, "a", "b", "c")
	if len(ids) != 1 {
		t.Errorf("got records of %q", ids)
	}
}
