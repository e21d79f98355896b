package record

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestObjectThatWasNeverHandledHasNoBase(t *testing.T) {
	f := newFixture(t)
	base, old, err := f.Base(t.Context(), f.body, f.report)
	if base != nil || old != nil || err != nil {
		t.Errorf("got %v, %v, %v", base, old, err)
	}
}

func TestBaseIsReadAsStoredAndWithoutRecords(t *testing.T) {
	f := newFixture(t)
	// Another version of the operator had counted its records as a part of the object.
	essence := object.Essence{"metadata": m{"annotations": m{"kopf.zalando.org/fn": "{}", "a": "b"}}, "spec": m{"size": int64(1)}}
	f.apply(func(into storage.Patch) error { return f.Storages.DiffBase.Store(t.Context(), f.body, into, essence) })
	base, old, err := f.Base(t.Context(), f.body, f.report)
	f.must(err)
	if !object.Equal(base, essence) {
		t.Errorf("the base is %v", base)
	}
	if want := (object.Essence{"metadata": m{"annotations": m{"a": "b"}}, "spec": m{"size": int64(1)}}); !object.Equal(old, want) {
		t.Errorf("the old essence is %v", old)
	}
}

func TestRecordsAreNoPartOfTheEssence(t *testing.T) {
	f := newFixture(t)
	before := f.Essence(f.body, nil)
	f.store(f.cycle(cause.Create, "fn"))
	if after := f.Essence(f.body, nil); !object.Equal(before, after) {
		t.Errorf("got %v, then %v", before, after)
	}
}

func TestWhatIsStoredIsOfAVersion(t *testing.T) {
	f := newFixture(t)
	stored, err := f.Read(t.Context(), f.body, nil, nil, f.report)
	if err != nil || stored.Version != "1" {
		t.Errorf("got %q, %v", stored.Version, err)
	}
}

func TestProgressFindsSubhandlersThroughTheirParents(t *testing.T) {
	f := newFixture(t)
	f.put("parent", storage.Record{Started: hourAgo(), Purpose: cause.Create, Subrefs: []string{"parent/child"}})
	f.put("parent/child", storage.Record{Started: hourAgo(), Purpose: cause.Create, Success: true})
	progress := f.progress("parent")
	if !progress.Has("parent/child") || !progress.Load("parent/child").Success {
		t.Errorf("got %q", progress.IDs())
	}
}

func TestIsRecord(t *testing.T) {
	f := newFixture(t)
	for annotation, want := range map[string]bool{"kopf.zalando.org/fn": true, "example.com/fn": false} {
		if got := f.IsRecord(annotation); got != want {
			t.Errorf("%s: got %v", annotation, got)
		}
	}
}

func TestUnreadableStateIsReportedOnceAndCountsAsAbsent(t *testing.T) {
	tests := map[string]struct {
		annotation string
		read       func(f *fixture) (absent bool, err error)
	}{
		"the base": {"kopf.zalando.org/last-handled-configuration", func(f *fixture) (bool, error) {
			base, old, err := f.Base(f.t.Context(), f.body, f.report)
			return base == nil && old == nil, err
		}},
		"a record": {"kopf.zalando.org/fn", func(f *fixture) (bool, error) {
			r, err := f.Record(f.t.Context(), f.body, "fn", f.report)
			return r == nil, err
		}},
		"the records of a cycle": {"kopf.zalando.org/fn", func(f *fixture) (bool, error) {
			progress, err := f.Progress(f.t.Context(), f.body, []string{"fn"}, f.report)
			return len(progress.Stored().IDs()) == 0, err
		}},
		"the states of a cycle": {startedKey, func(f *fixture) (bool, error) {
			kept, err := f.keptOn(f.t.Context(), f.body, &Cycle{Reason: cause.Update, Progress: f.progress()}, f.report)
			return kept == nil, err
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.change(m{"metadata": m{"annotations": m{test.annotation: "{broken"}}})
			for range 2 {
				if absent, err := test.read(f); !absent || err != nil {
					t.Errorf("got %v, %v", absent, err)
				}
				if len(f.log) != 1 || len(f.events) != 1 || !strings.HasPrefix(f.events[0], "Warning UnreadableState: ") {
					t.Errorf("got %q, %q", f.log, f.events)
				}
			}
		})
	}
}

var errDown = errors.New("the database of the storage is down")

// downBase and downProgress are storages in a database that is down.
type downBase struct{ storage.DiffBase }

func (downBase) Fetch(context.Context, *object.Body) (object.Essence, error) { return nil, errDown }

type downProgress struct{ storage.Progress }

func (downProgress) Fetch(context.Context, *object.Body, string) (*storage.Record, error) {
	return nil, errDown
}

func TestOtherErrorsOfStoragesAreReturned(t *testing.T) {
	f := newFixture(t)
	f.Storages = settings.Persistence{DiffBase: downBase{f.Storages.DiffBase}, Progress: downProgress{f.Storages.Progress}}
	_, _, baseErr := f.Base(t.Context(), f.body, f.report)
	_, recordErr := f.Record(t.Context(), f.body, "fn", f.report)
	_, progressErr := f.Progress(t.Context(), f.body, []string{"fn"}, f.report)
	for name, err := range map[string]error{"base": baseErr, "record": recordErr, "progress": progressErr} {
		if !errors.Is(err, errDown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(f.log)+len(f.events) > 0 {
		t.Errorf("got %q, %q", f.log, f.events)
	}
}

func TestLastRunOfATimer(t *testing.T) {
	f := newFixture(t)
	f.change(m{"metadata": m{"creationTimestamp": "2024-01-01T00:00:00Z"}})
	if run, err := f.LastRun(t.Context(), f.body, "timer", f.report); err != nil || !run.Started.Equal(date(1)) || run.Retries > 0 {
		t.Errorf("without a run: got %+v, %v", run, err)
	}
	f.put(RunOf("timer"), storage.Record{Started: date(2), Retries: 3})
	if run, err := f.LastRun(t.Context(), f.body, "timer", f.report); err != nil || !run.Started.Equal(date(2)) || run.Retries != 3 {
		t.Errorf("got %+v, %v", run, err)
	}
}

// a has ended at the size of 1, and b at 2. c is retried at 3, where d has just ended.
func TestEndedAtAreTheEarlierStatesOfHandlersThatHaveEnded(t *testing.T) {
	for reason, want := range map[cause.Reason]map[string]int64{cause.Create: {"a": 1, "b": 2}, cause.Delete: nil} {
		l := &line{fixture: newFixture(t), ids: []string{"a", "b", "c", "d"}}
		l.pass(1, "a")
		l.pass(2, "b")
		l.pass(3, "d")
		l.put("deleted", storage.Record{Started: hourAgo(), Purpose: cause.Delete, Success: true})
		c := l.open(cause.Create)
		c.Progress.Load("deleted")
		c.Reason = reason
		states, err := l.EndedAt(t.Context(), c, l.body, l.report)
		l.must(err)
		if len(states) != len(want) {
			t.Errorf("%s: got %v", reason, states)
		}
		for id, state := range states {
			if size(state) != want[id] {
				t.Errorf("%s: got %v for %s", reason, state, id)
			}
		}
	}
}

func TestHandlersHaveEndedAtNoStateBeforeTheFirstEnd(t *testing.T) {
	f := newFixture(t)
	f.store(f.cycle(cause.Create, "a"))
	if states, err := f.EndedAt(t.Context(), f.cycle(cause.Create, "a"), f.body, f.report); states != nil || err != nil {
		t.Errorf("got %v, %v", states, err)
	}
}

// A cycle can be in a database: it is read only for objects that have one.
func TestTheOpenCycleIsReadOnlyIfThereCanBeOne(t *testing.T) {
	for name, test := range map[string]struct {
		r    storage.Record
		want int
	}{
		"a deletion":                         {storage.Record{Purpose: cause.Delete, Retries: 1}, 0},
		"handlers at a start":                {storage.Record{Purpose: cause.Resume, Retries: 1}, 0},
		"no handler of an update has ended":  {storage.Record{Purpose: cause.Update, Retries: 1}, 1},
		"none of a creation has ended":       {storage.Record{Purpose: cause.Create, Retries: 1}, 1},
		"a handler and its cycle have ended": {storage.Record{Purpose: cause.Update, Success: true, Cycle: "7"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Storages.Progress = storage.StatusProgress{}
			f.put("a", test.r)
			reads := countingBase{DiffBase: f.Storages.DiffBase, CycleBase: f.cycles(), reads: new(int)}
			f.Storages.DiffBase = reads
			_, err := f.Read(t.Context(), f.body, []string{"a"}, nil, f.report)
			if f.must(err); *reads.reads != test.want {
				t.Errorf("got %d", *reads.reads)
			}
		})
	}
}

// countingBase counts how often the open cycle is read.
type countingBase struct {
	storage.DiffBase
	storage.CycleBase

	reads *int
}

func (b countingBase) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	*b.reads++
	return b.CycleBase.FetchCycle(ctx, body)
}

func (b countingBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	return b.DiffBase.Fetch(ctx, body)
}

func (b countingBase) Store(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) error {
	return b.DiffBase.Store(ctx, body, into, essence)
}

// downLister is a storage that cannot list records.
type downLister struct{ storage.Progress }

func (downLister) UnknownRecords(context.Context, *object.Body, []string) ([]string, error) {
	return nil, errDown
}

func TestErrorsOfListingRecordsAreReturned(t *testing.T) {
	f := newFixture(t)
	f.Storages.Progress = downLister{f.Storages.Progress}
	if names, err := f.Unknown(t.Context(), f.body, nil); !errors.Is(err, errDown) || names != nil {
		t.Errorf("got %q, %v", names, err)
	}
}
