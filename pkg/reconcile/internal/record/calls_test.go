package record

import (
	"errors"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// calls returns calls of handlers outside of a cycle, which must have these records.
func (f *fixture) calls(records map[string]*storage.Record, ids ...string) *Calls {
	progress := call.NewProgress(func(string) *storage.Record { return nil })
	for _, id := range ids {
		progress.Include(id, cause.Update, false)
	}
	return &Calls{Progress: progress, Records: func() map[string]*storage.Record { return records }}
}

// failing returns the records of two handlers that fail, and of one that does not fail anymore.
func failing() map[string]*storage.Record {
	return map[string]*storage.Record{
		"a": {Started: hourAgo(), Retries: 1}, "b": {Started: hourAgo(), Retries: 2}, "healed": nil,
	}
}

func TestCallsOutsideOfACycleHaveARecordWhileTheyFail(t *testing.T) {
	f := newFixture(t)
	f.put("healed", storage.Record{Started: hourAgo(), Retries: 1})
	f.apply(func(into storage.Patch) error {
		return f.StoreCalls(t.Context(), f.calls(failing()), f.body, into, none)
	})
	progress := f.progress("a", "b", "healed")
	if got := progress.Stored().IDs(); !slices.Equal(got, []string{"a", "b"}) || progress.Load("b").Retries != 2 {
		t.Errorf("got %q, %+v", got, progress.Load("b").Record)
	}
}

func TestErrorsOfStoringTheRecordsOfCallsAreReturned(t *testing.T) {
	for n := 1; n <= len(failing()); n++ {
		f := newFixture(t)
		f.Storages.Progress = failingProgress{f.Storages.Progress, new(countdown(n))}
		if err := f.StoreCalls(t.Context(), f.calls(failing()), f.body, storage.Patch{}, none); !errors.Is(err, errDown) {
			t.Errorf("call %d: got %v", n, err)
		}
	}
}

func TestCallsChangeRecordsIfTheyHaveSome(t *testing.T) {
	f := newFixture(t)
	for want, c := range map[bool][]*Calls{
		true:  {f.calls(failing()), f.calls(map[string]*storage.Record{"healed": nil})},
		false: {f.calls(nil, "succeeds"), nil},
	} {
		for _, calls := range c {
			if got := calls.HasRecords(); got != want {
				t.Errorf("%+v: got %v", calls, got)
			}
		}
	}
}

// The edit of a handler may be withheld; its record waits for it.
func TestTheRecordsOfWithheldCallsAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.put("healed", storage.Record{Started: hourAgo(), Retries: 1})
	f.apply(func(into storage.Patch) error {
		return f.StoreCalls(t.Context(), f.calls(failing()), f.body, into, func(id string) bool { return id != "b" })
	})
	if got := f.progress("a", "b", "healed").Stored().IDs(); !slices.Equal(got, []string{"b", "healed"}) {
		t.Errorf("got %q", got)
	}
}

// none is a condition that holds for no handler.
func none(string) bool { return false }

// The edits of event handlers and daemons are written together with those of the calls.
func TestCallsFailForTheEditsOfTheirHandlersOnly(t *testing.T) {
	c := newFixture(t).calls(nil, "a", "b")
	(*Calls)(nil).FailHandler("a", errDown)
	c.FailHandler("event handler", errDown)
	c.FailHandler("a", errDown)
	if got := c.Progress.IDs(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
	if !c.Progress.Load("a").Failure || c.Progress.Load("b").Finished() {
		t.Errorf("got %+v, %+v", c.Progress.Load("a").Record, c.Progress.Load("b").Record)
	}
}

func TestCallsAreRevisedForTheEditsOfTheirHandlersOnly(t *testing.T) {
	c := newFixture(t).calls(nil, "a", "b")
	retried := call.Outcome{Err: errDown}
	if (*Calls)(nil).ReviseHandler("a", retried) || c.ReviseHandler("event handler", retried) || !c.ReviseHandler("a", retried) {
		t.Error("it revises a handler that is not called, or not the one that is")
	}
	if got := c.Progress.IDs(); !slices.Equal(got, []string{"a", "b"}) || c.Progress.Load("a").Message != errDown.Error() {
		t.Errorf("got %q, %+v", got, c.Progress.Load("a").Record)
	}
}

func TestCallsEndInAPass(t *testing.T) {
	c := newFixture(t).calls(nil, "failed", "succeeded", "retried")
	c.FailHandler("failed", errDown)
	c.ReviseHandler("succeeded", succeeded)
	c.ReviseHandler("retried", call.Outcome{Err: errDown})
	for id, want := range map[string]bool{"failed": true, "succeeded": true, "retried": false, "another": false} {
		if got := c.Ended(id); (got != nil) != want || want && got.Success == (id == "failed") {
			t.Errorf("%s: got %+v", id, got)
		}
	}
	if c.Progress.Has("another") {
		t.Error("a handler that is not called has a record")
	}
}

func TestNoCallsHaveNoRecords(t *testing.T) {
	f := newFixture(t)
	if into := f.apply(func(into storage.Patch) error { return f.StoreCalls(t.Context(), nil, f.body, into, none) }); len(into) > 0 {
		t.Errorf("got %v", into)
	}
}
