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
