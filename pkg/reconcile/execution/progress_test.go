package execution_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
	"github.com/kopf-go/kopf/pkg/storage"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func progressOf(records map[string]*storage.Record) *execution.Progress {
	return execution.NewProgress(func(id string) *storage.Record { return records[id] })
}

func TestEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		before := now.Add(-time.Hour)
		stored := func(purpose cause.Reason) *storage.Record {
			return &storage.Record{Started: before, Purpose: purpose, Retries: 2, Message: "m"}
		}
		scratch := storage.Record{Started: now, Purpose: cause.Update}
		goesOn := storage.Record{Started: before, Purpose: cause.Update, Retries: 2, Message: "m"}
		tests := map[string]struct {
			stored  *storage.Record
			keep    bool
			want    storage.Record
			touched bool
		}{
			"nothing is stored":                     {nil, false, scratch, true},
			"nothing is stored that could be kept":  {nil, true, scratch, true},
			"it goes on for the same purpose":       {stored(cause.Update), false, goesOn, false},
			"it begins anew for another purpose":    {stored(cause.Create), false, scratch, true},
			"it goes on in spite of another one":    {stored(cause.Create), true, goesOn, true},
			"it goes on if nobody knows for what":   {stored(""), false, goesOn, true},
			"what never began cannot go on":         {&storage.Record{Purpose: cause.Update}, false, scratch, true},
			"what never began elsewhere cannot too": {&storage.Record{Purpose: cause.Create}, true, scratch, true},
		}
		for name, test := range tests {
			progress := progressOf(map[string]*storage.Record{"a": test.stored})
			got := progress.Include("a", cause.Update, test.keep)
			if !got.Record.Equal(&test.want) || (len(progress.Dirty()) > 0) != test.touched {
				t.Errorf("%s: got %+v, touched %v", name, got.Record, progress.Dirty())
			}
			if got.Stored() != test.stored {
				t.Errorf("%s: the stored record became %+v", name, got.Stored())
			}
		}
	})
}

func TestWhatIsStoredTellsAboutOpenCycles(t *testing.T) {
	then := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	progress := progressOf(map[string]*storage.Record{
		"a":   {Started: then, Purpose: cause.Create, Subrefs: []string{"a/x", "a/y"}},
		"a/x": {Started: then.Add(time.Second), Purpose: cause.Create},
		"b":   {Started: then.Add(time.Minute), Purpose: cause.Update},
		"c":   {Started: then.Add(time.Minute)},
	})
	if progress.HasLeftovers() || progress.Has("a/x") {
		t.Error("records were read before anybody asked")
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		progress.Load(id)
	}
	tests := map[string]struct{ got, want any }{
		"what was found":                    {progress.Stored(), []string{"a", "a/x", "b", "c"}},
		"what is known":                     {progress.IDs(), []string{"a", "a/x", "a/y", "b", "c", "d"}},
		"a sub-handler":                     {progress.Has("a/y"), true},
		"somebody else's":                   {progress.Has("e"), false},
		"something is left":                 {progress.HasLeftovers(), true},
		"a creation is open":                {progress.HasOpen(cause.Create), true},
		"no deletion is":                    {progress.HasOpen(cause.Delete), false},
		"since then":                        {progress.HasStartedBy(then), true},
		"since before":                      {progress.HasStartedBy(then.Add(-1)), false},
		"an update gives the creation up":   {progress.Superseded(cause.Update), map[cause.Reason]int{cause.Create: 2}},
		"a creation gives the update up":    {progress.Superseded(cause.Create), map[cause.Reason]int{cause.Update: 1}},
		"nobody takes part yet":             {progress.Dirty(), []string{}},
		"so nobody is waited for":           {progress.Done(), true},
		"the stored record is the storages": {progress.Load("a").Stored().Purpose, cause.Create},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(pause time.Duration) *storage.Record {
			return &storage.Record{Started: time.Now(), Purpose: cause.Create, Delayed: time.Now().Add(pause)}
		}
		done := &storage.Record{Started: time.Now(), Purpose: cause.Create, Success: true}
		tests := map[string]struct {
			records map[string]*storage.Record
			wake    time.Duration
			waiting bool
		}{
			"nobody takes part":                {nil, 0, false},
			"all have finished":                {map[string]*storage.Record{"a": done}, 0, false},
			"one is due":                       {map[string]*storage.Record{"a": done, "b": in(-time.Second)}, 0, true},
			"one waits":                        {map[string]*storage.Record{"a": done, "b": in(time.Minute)}, time.Minute, true},
			"the first of several":             {map[string]*storage.Record{"a": in(time.Hour), "b": in(time.Minute)}, time.Minute, true},
			"one is due while the other waits": {map[string]*storage.Record{"a": in(time.Hour), "b": in(0)}, 0, true},
		}
		for name, test := range tests {
			progress := progressOf(test.records)
			for id := range test.records {
				progress.Include(id, cause.Create, false)
			}
			if wake, waiting := progress.NextDelay(); wake != test.wake || waiting != test.waiting || progress.Done() == waiting {
				t.Errorf("%s: got %s, %v", name, wake, waiting)
			}
		}
	})
}

// Who was not called for this change keeps what is stored of him, and holds
// nobody up.
func TestHandlersThatTakeNoPartAreLeftAlone(t *testing.T) {
	progress := progressOf(map[string]*storage.Record{"a": {Started: time.Now(), Purpose: cause.Create}})
	progress.Load("a")
	progress.Include("b", cause.Create, false)
	progress.Fail("b", errors.New("refused"))
	if !progress.Done() || !slices.Equal(progress.Dirty(), []string{"b"}) {
		t.Errorf("got %v", progress.Dirty())
	}
	if succeeded, failed := progress.Counts(); succeeded != 0 || failed != 1 {
		t.Errorf("got %d, %d", succeeded, failed)
	}
}

// A success turns into a failure when the API server refuses its result.
func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		progress := progressOf(map[string]*storage.Record{"a": {Started: time.Now(), Purpose: cause.Create, Success: true}})
		progress.Include("a", cause.Create, false)
		progress.Fail("a", fmt.Errorf("spec.size: %w", errors.New("must be a number")))
		got := progress.Load("a")
		if !got.Failure || got.Success || got.Message != "spec.size: must be a number" || got.Stopped.IsZero() {
			t.Errorf("got %+v", got.Record)
		}
	})
}

func TestPersisted(t *testing.T) {
	progress := progressOf(nil)
	state := progress.Include("a", cause.Create, false)
	progress.MarkStored()
	if len(progress.Dirty()) != 0 || state.Stored() == nil || state.Stored() == &state.Record {
		t.Errorf("got %v, %+v", progress.Dirty(), state.Stored())
	}
	progress.Fail("a", errors.New("refused"))
	if !slices.Equal(progress.Dirty(), []string{"a"}) || state.Stored().Failure {
		t.Errorf("got %v, %+v", progress.Dirty(), state.Stored())
	}
}
