package call_test

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
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func progressOf(records map[string]*storage.Record) *call.Progress {
	return call.NewProgress(func(id string) *storage.Record { return records[id] })
}

func TestInclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		before := now.Add(-time.Hour)
		stored := func(purpose cause.Reason) *storage.Record {
			return &storage.Record{Started: before, Purpose: purpose, Retries: 2, Message: "m"}
		}
		fresh := storage.Record{Started: now, Purpose: cause.Update}
		continued := storage.Record{Started: before, Purpose: cause.Update, Retries: 2, Message: "m"}
		tests := map[string]struct {
			stored *storage.Record
			keep   bool
			want   storage.Record
			dirty  bool
		}{
			"nothing is stored":                         {nil, false, fresh, true},
			"nothing is stored that could be kept":      {nil, true, fresh, true},
			"the same purpose continues":                {stored(cause.Update), false, continued, false},
			"another purpose starts from scratch":       {stored(cause.Create), false, fresh, true},
			"another purpose continues if kept":         {stored(cause.Create), true, continued, true},
			"no purpose continues":                      {stored(""), false, continued, true},
			"a record without a start is not continued": {&storage.Record{Purpose: cause.Update}, false, fresh, true},
			"nor is it if kept for another purpose":     {&storage.Record{Purpose: cause.Create}, true, fresh, true},
		}
		for name, test := range tests {
			progress := progressOf(map[string]*storage.Record{"a": test.stored})
			got := progress.Include("a", cause.Update, test.keep)
			if !got.Record.Equal(&test.want) || (len(progress.Dirty()) > 0) != test.dirty {
				t.Errorf("%s: got %+v, dirty %v", name, got.Record, progress.Dirty())
			}
			if got.Stored() != test.stored {
				t.Errorf("%s: the stored record became %+v", name, got.Stored())
			}
		}
	})
}

func TestStoredRecordsShowOpenCycles(t *testing.T) {
	then := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	progress := progressOf(map[string]*storage.Record{
		"a":   {Started: then, Purpose: cause.Create, Subrefs: []string{"a/x", "a/y"}},
		"a/x": {Started: then.Add(time.Second), Purpose: cause.Create},
		"b":   {Started: then.Add(time.Minute), Purpose: cause.Update},
		"c":   {Started: then.Add(time.Minute), Cycle: "7"},
	})
	if progress.Stored().HasStale() || progress.Has("a/x") {
		t.Error("records were loaded before they were needed")
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		progress.Load(id)
	}
	tests := map[string]struct{ got, want any }{
		"stored ids":                        {progress.Stored().IDs(), []string{"a", "a/x", "b", "c"}},
		"all ids":                           {progress.IDs(), []string{"a", "a/x", "a/y", "b", "c", "d"}},
		"a sub-handler is known":            {progress.Has("a/y"), true},
		"another id is unknown":             {progress.Has("e"), false},
		"there are stale records":           {progress.Stored().HasStale(), true},
		"a creation is open":                {progress.Stored().HasOpen(cause.Create), true},
		"no deletion is open":               {progress.Stored().HasOpen(cause.Delete), false},
		"a record was started by then":      {progress.Stored().HasStartedBy(then), true},
		"no record was started before":      {progress.Stored().HasStartedBy(then.Add(-1)), false},
		"a record has the token":            {progress.Stored().HasToken("7"), true},
		"no record has another token":       {progress.Stored().HasToken("8"), false},
		"an update supersedes the creation": {progress.Stored().Superseded(cause.Update), map[cause.Reason]int{cause.Create: 2}},
		"a creation supersedes the update":  {progress.Stored().Superseded(cause.Create), map[cause.Reason]int{cause.Update: 1}},
		"no handler is included yet":        {progress.Dirty(), []string{}},
		"so no handler is waited for":       {progress.Done(), true},
		"the stored record":                 {progress.Load("a").Stored().Purpose, cause.Create},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
}

func TestNextDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(pause time.Duration) *storage.Record {
			return &storage.Record{Started: time.Now(), Purpose: cause.Create, Delayed: time.Now().Add(pause)}
		}
		done := &storage.Record{Started: time.Now(), Purpose: cause.Create, Success: true}
		tests := map[string]struct {
			records map[string]*storage.Record
			delay   time.Duration
			waiting bool
		}{
			"no handler is included":         {nil, 0, false},
			"all have finished":              {map[string]*storage.Record{"a": done}, 0, false},
			"one is due":                     {map[string]*storage.Record{"a": done, "b": in(-time.Second)}, 0, true},
			"one waits":                      {map[string]*storage.Record{"a": done, "b": in(time.Minute)}, time.Minute, true},
			"the first of several is due":    {map[string]*storage.Record{"a": in(time.Hour), "b": in(time.Minute)}, time.Minute, true},
			"one is due while another waits": {map[string]*storage.Record{"a": in(time.Hour), "b": in(0)}, 0, true},
		}
		for name, test := range tests {
			progress := progressOf(test.records)
			for id := range test.records {
				progress.Include(id, cause.Create, false)
			}
			for range 20 { // the order of the handlers is random
				if delay, waiting := progress.NextDelay(); delay != test.delay || waiting != test.waiting || progress.Done() == waiting {
					t.Errorf("%s: got %s, %v", name, delay, waiting)
				}
			}
		}
	})
}

// Handlers that are not included keep their stored records, and are not waited for.
func TestHandlersThatAreNotIncludedAreLeftAlone(t *testing.T) {
	progress := progressOf(map[string]*storage.Record{"a": {Started: time.Now(), Purpose: cause.Create}})
	progress.Load("a")
	progress.Include("b", cause.Create, false)
	progress.Fail("b", errors.New("rejected"))
	if !progress.Done() || !slices.Equal(progress.Dirty(), []string{"b"}) {
		t.Errorf("got %v", progress.Dirty())
	}
	if succeeded, failed := progress.Counts(); succeeded != 0 || failed != 1 {
		t.Errorf("got %d, %d", succeeded, failed)
	}
}

// A success becomes a failure when the API server rejects the handler's edit.
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

func TestMarkStored(t *testing.T) {
	progress := progressOf(nil)
	state := progress.Include("a", cause.Create, false)
	progress.MarkStored()
	if len(progress.Dirty()) != 0 || state.Stored() == nil || state.Stored() == &state.Record {
		t.Errorf("got %v, %+v", progress.Dirty(), state.Stored())
	}
	progress.Fail("a", errors.New("rejected"))
	if !slices.Equal(progress.Dirty(), []string{"a"}) || state.Stored().Failure {
		t.Errorf("got %v, %+v", progress.Dirty(), state.Stored())
	}
}
