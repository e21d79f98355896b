package call_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errMisfit = &handler.MisfitError{Type: "*v1.Pod", Err: errors.New("no number")}

// misfits makes a pass, and checks which handlers wait without an attempt.
func (w *world) misfits(handlers ...*handler.Declaration) {
	w.t.Helper()
	_, progress, err := w.pass(w.t.Context(), handlers...)
	if err != nil {
		w.t.Fatal(err)
	}
	if delay, waiting := progress.NextDelay(); waiting || progress.Done() || !progress.HasMisfit() {
		w.t.Errorf("done: %t, waiting: %t for %s", progress.Done(), waiting, delay)
	}
}

func TestMisfitsHaveNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.misfits(
			w.handler("misfit", func(context.Context, *handler.Call) error { return errMisfit }, handler.Retries(1)),
			w.handler("fits", failing(0, nil)),
		)
		w.expect("0s fits: succeeded")
		if got := w.storedIDs(); !slices.Equal(got, []string{"fits"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestMisfitsKeepTheirEarlierAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		answer := handler.Temporary(errNetwork, time.Second)
		d := w.handler("a", func(context.Context, *handler.Call) error { return answer })
		if _, _, err := w.pass(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		answer = errMisfit
		w.misfits(d)
		if got := w.stored["a"]; got.Retries != 1 || got.Finished() {
			t.Errorf("got %+v", got)
		}
	})
}

func TestHandlersWaitWithTheirSubhandlers(t *testing.T) {
	never := handler.WhenDecoded(&corev1.Pod{}, func(*handler.Call) (bool, error) { return false, errMisfit })
	for name, test := range map[string]struct {
		handler func(context.Context, *handler.Call) error
		log     []string
		stored  []string
	}{
		"one returns the error": {
			parent(subs{"x": func(context.Context, *handler.Call) error { return errMisfit }}),
			nil, nil,
		},
		"another has ended": {
			parent(subs{"x": func(context.Context, *handler.Call) error { return errMisfit }, "y": failing(0, nil)}),
			[]string{"0s a/y: succeeded"},
			[]string{"a", "a/y"},
		},
		"a filter of one returns the error": {func(_ context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", failing(0, nil), never)
			return nil
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.body = map[string]any{"spec": "a text"}
				w.misfits(w.handler("a", test.handler))
				w.expect(test.log...)
				if got := w.storedIDs(); !slices.Equal(got, test.stored) {
					t.Errorf("got %v, want %v", got, test.stored)
				}
			})
		})
	}
}

func TestRequestsReachSubhandlers(t *testing.T) {
	for name, test := range map[string]struct {
		request func(p *call.Progress)
		log     []string
	}{
		"retry the handler":     {func(p *call.Progress) { p.Retry("a") }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"retry the sub-handler": {func(p *call.Progress) { p.Retry("a/x") }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"rerun the handler":     {func(p *call.Progress) { p.Rerun("a", cause.Create) }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"skip the handler":      {func(p *call.Progress) { p.Skip("a", cause.Create) }, nil},
		"skip the sub-handler":  {func(p *call.Progress) { p.Skip("a/x", cause.Create) }, []string{"0s a: succeeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				d := w.handler("a", parent(subs{"x": failing(1, handler.Temporary(errNetwork, time.Hour))}))
				if _, _, err := w.pass(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				w.log = nil
				runner, progress := w.begin([]*handler.Declaration{d})
				test.request(progress)
				if err := runner.Run(t.Context(), []*handler.Declaration{d}); err != nil {
					t.Fatal(err)
				}
				w.expect(test.log...)
				if !progress.Done() {
					t.Error("it is not done")
				}
			})
		})
	}
}

func TestMisfitsKeepTheCycleOpen(t *testing.T) {
	p := progressOf(nil)
	if p.HasMisfit() || !p.Done() || p.Misfit("a") != nil {
		t.Error("none is a misfit")
	}
	p.Load("b")
	if p.HasMisfit() {
		t.Error("none is a misfit")
	}
	p.SetMisfit("a", errMisfit)
	if !p.HasMisfit() || p.Done() || p.Misfit("a") == nil || p.Misfit("b") != nil {
		t.Error("a is a misfit, and b is not")
	}
}

// A record is written for a misfit only if it says more than that the
// handler was not called.
func TestMisfitsKeepARecordThatSaysSomething(t *testing.T) {
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

func TestTimeOfAMisfitDoesNotCountAgainstTheTimeout(t *testing.T) {
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
