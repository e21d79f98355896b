package call_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestHandlersSetAsideKeepTheCycleOpen(t *testing.T) {
	p := progressOf(nil)
	if p.HasMisfit() || !p.Done() || p.Misfit("a") != nil {
		t.Error("none is set aside")
	}
	p.Load("b")
	if p.HasMisfit() {
		t.Error("none is set aside")
	}
	p.SetMisfit("a", errMisfit)
	if !p.HasMisfit() || p.Done() || p.Misfit("a") == nil || p.Misfit("b") != nil {
		t.Error("a is set aside, and b is not")
	}
}

// A record is written for a handler that is set aside only if it says more than that the
// handler was not called.
func TestHandlersSetAsideKeepARecordThatSaysSomething(t *testing.T) {
	stored := storage.Record{Started: time.Now(), Purpose: cause.Create}
	tests := map[string]struct {
		records map[string]*storage.Record
		do      func(s *call.State)
		want    bool
	}{
		"nothing is stored":          {nil, func(*call.State) {}, false},
		"its record is carried over": {map[string]*storage.Record{"a": &stored}, func(*call.State) {}, true},
		"it was called":              {nil, func(s *call.State) { s.Retries = 1 }, true},
		"its sub-handler has a record": {map[string]*storage.Record{"a/x": &stored}, func(s *call.State) {
			s.Subrefs = []string{"a/x"}
		}, true},
		"its sub-handler has none": {nil, func(s *call.State) { s.Subrefs = []string{"a/x"} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := progressOf(test.records)
			test.do(p.Include("a", cause.Update, true))
			p.SetMisfit("a", errMisfit)
			if got := slices.Contains(p.Dirty(), "a"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTimeAsideDoesNotCountAgainstTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		called := storage.Record{Started: now.Add(-time.Hour), Purpose: cause.Update, Retries: 1}
		waiting := func(until time.Duration) storage.Record {
			r := called
			r.Delayed = now.Add(until)
			return r
		}
		finished, unstarted := called, called
		finished.Success, unstarted.Retries = true, 0
		ago := func(d time.Duration) time.Time { return now.Add(-d) }
		tests := map[string]struct {
			stored storage.Record
			since  time.Time
			left   time.Duration
		}{
			"it was due all the time":         {called, ago(time.Minute), time.Minute},
			"it was due before":               {waiting(-2 * time.Minute), ago(time.Minute), time.Minute},
			"it became due meanwhile":         {waiting(-time.Second), ago(time.Minute), time.Second},
			"it is not due":                   {waiting(time.Second), ago(time.Minute), 0},
			"no time has passed":              {called, now, 0},
			"nothing is known about the time": {called, time.Time{}, 0},
			"it has finished":                 {finished, ago(time.Minute), 0},
			"it was not called":               {unstarted, ago(time.Minute), 0},
		}
		for name, test := range tests {
			p := progressOf(map[string]*storage.Record{"a": &test.stored})
			state := p.Include("a", cause.Update, false)
			state.LeaveOut(test.since)
			if got := state.Started.Sub(test.stored.Started); got != test.left || (len(p.Dirty()) > 0) != (got != 0) {
				t.Errorf("%s: got %s, dirty %q", name, got, p.Dirty())
			}
		}
		state := progressOf(nil).Include("a", cause.Update, false)
		state.Retries = 1
		if state.LeaveOut(ago(time.Minute)); !state.Started.Equal(now) {
			t.Errorf("no record is stored: got %+v", state.Record)
		}
	})
}

func TestHandlersWithoutARecordAreNotMarkedAsStored(t *testing.T) {
	p := progressOf(nil)
	p.Include("a", cause.Update, false)
	p.SetMisfit("a", errMisfit)
	if p.MarkStored(); p.Load("a").Stored() != nil {
		t.Errorf("got %+v", p.Load("a").Stored())
	}
}

func TestHandlersThatWereNotCalledLeaveNoRecord(t *testing.T) {
	stored := storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1}
	p := progressOf(map[string]*storage.Record{"carried over": &stored})
	for _, id := range []string{"not called", "carried over", "with a sub-handler"} {
		p.Include(id, cause.Update, true)
	}
	p.Load("with a sub-handler").Subrefs = []string{"x"}
	p.WithdrawUnstarted()
	if got := p.Dirty(); !slices.Equal(got, []string{"carried over", "with a sub-handler"}) {
		t.Errorf("got %q", got)
	}
}

func TestNoDelayIsKnownOfHandlersThatWaitForASlot(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		handlers := registry.Handlers{w.handler("a", failing(0, nil))}
		runner, progress := w.begin(handlers)
		runner.Slots.Take(call.Claim{ID: "another"})
		err := runner.Run(t.Context(), handlers)
		if delay, known := progress.NextDelay(); err != nil || known || progress.Done() {
			t.Errorf("done: %t, %s, %t, %v", progress.Done(), delay, known, err)
		}
	})
}
