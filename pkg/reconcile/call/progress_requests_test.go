package call_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Another pass may call the handlers that become due, so that their records change. The others keep theirs, also one that
// another operator has ended with a delay.
func TestRetryMakesWaitingHandlersDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := func(subrefs ...string) *storage.Record {
			return &storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1, Delayed: time.Now().Add(time.Hour), Subrefs: subrefs}
		}
		ended := waiting()
		ended.Success = true
		due := waiting()
		due.Delayed = time.Time{}
		stored := map[string]*storage.Record{
			"a": waiting("a/waiting", "a/ended", "a/due"), "a/waiting": waiting(), "a/ended": ended, "a/due": due, "other": waiting(),
		}
		for id, want := range map[string][]string{
			"a":         {"a", "a/waiting"},
			"a/waiting": {"a", "a/waiting"},
			"a/due":     {"a"},
			"other":     {"other"},
		} {
			p := progressOf(stored)
			p.Load("a")
			p.Load("other")
			p.Retry(id)
			if got := p.Dirty(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q", id, got)
			}
			if delay, known := p.NextDelay(); delay != 0 || !known {
				t.Errorf("%s: got %s, %v", id, delay, known)
			}
		}
	})
}

// The new records are stored before the calls: the request is not repeated.
func TestRerunLetsHandlersStartFromScratch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now().Add(-time.Hour)
		ended := &storage.Record{Started: before, Purpose: cause.Update, Retries: 3, Success: true}
		parent := *ended
		parent.Subrefs = []string{"a/x"}
		waiting := &storage.Record{Started: before, Purpose: cause.Update, Retries: 1, Delayed: time.Now().Add(time.Hour), Subrefs: []string{"a/x"}}
		for name, test := range map[string]struct {
			parent *storage.Record
			id     string
			fresh  []string
		}{
			"a handler with its sub-handlers":       {&parent, "a", []string{"a", "a/x"}},
			"a sub-handler, which its parent calls": {waiting, "a/x", []string{"a/x"}},
		} {
			p := progressOf(map[string]*storage.Record{"a": test.parent, "a/x": ended})
			p.Load("a")
			p.Rerun(test.id, cause.Update)
			if got := p.Dirty(); !slices.Equal(got, []string{"a", "a/x"}) {
				t.Errorf("%s: got %q", name, got)
			}
			for _, id := range test.fresh {
				if got := p.Load(id); got.Finished() || got.Retries != 0 || !got.Started.Equal(time.Now()) {
					t.Errorf("%s: got %+v", id, got.Record)
				}
			}
			if got := p.Load("a"); !slices.Equal(got.Subrefs, []string{"a/x"}) || got.RemainingDelay(time.Now()) != 0 {
				t.Errorf("%s: got %+v", name, got.Record)
			}
		}
	})
}

// Nothing calls the sub-handlers of a handler that is skipped, although another request has made one of them due.
func TestSkippedHandlersDoNotWaitForTheirSubhandlers(t *testing.T) {
	p := progressOf(map[string]*storage.Record{
		"a":   {Started: time.Now(), Purpose: cause.Update, Retries: 1, Subrefs: []string{"a/x"}},
		"a/x": {Started: time.Now(), Purpose: cause.Update, Retries: 1, Delayed: time.Now().Add(time.Hour)},
	})
	p.Retry("a/x")
	p.Load("a")
	p.Skip("a", cause.Update)
	if got := p.Dirty(); !p.Done() || !slices.Equal(got, []string{"a"}) {
		t.Errorf("done: %v, got %q", p.Done(), got)
	}
}

// The time of a handler does not run before its first call, while it is postponed.
func TestPostponedHandlersGetNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			stored *storage.Record
			by     time.Duration
			dirty  []string
		}{
			"it was not called":                     {nil, time.Minute, []string{}},
			"it was not called, and the time is up": {nil, 0, []string{"a"}},
			"it was called":                         {&storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1}, time.Minute, []string{"a"}},
		} {
			p := progressOf(map[string]*storage.Record{"a": test.stored})
			p.Include("a", cause.Update, true).Postpone(time.Now().Add(test.by))
			if got := p.Dirty(); !slices.Equal(got, test.dirty) {
				t.Errorf("%s: got %q", name, got)
			}
			if delay, known := p.NextDelay(); delay != test.by || !known {
				t.Errorf("%s: got %s, %v", name, delay, known)
			}
		}
	})
}

func TestTemporaryErrorsWithoutADelayLeaveNone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		delay := time.Minute
		d := w.handler("a", func(context.Context, *handler.Call) error { return handler.Temporary(errNetwork, delay) })
		for ; delay >= 0; delay -= time.Minute {
			_, progress, err := w.pass(t.Context(), d)
			if got, known := progress.NextDelay(); err != nil || got != delay || !known {
				t.Errorf("got %v, %s, %v", err, got, known)
			}
			time.Sleep(delay)
		}
		if got := w.stored["a"]; got.Retries != 2 || !got.Delayed.IsZero() {
			t.Errorf("got %+v", got)
		}
	})
}

// A handler has failed for good, and its edit, which is tried later, asks for another attempt.
func TestFailedHandlersAreCalledAgainIfThatIsFoundLater(t *testing.T) {
	p := progressOf(nil)
	p.Include("a", cause.Update, false)
	p.Fail("a", errNetwork)
	p.Revise("a", call.Outcome{Err: errLater, Delay: time.Minute})
	if got := p.Load("a"); got.Finished() || got.Message != "found later" {
		t.Errorf("got %+v", got.Record)
	}
}
