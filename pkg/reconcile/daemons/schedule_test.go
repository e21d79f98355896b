package daemons_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/storage"
)

// A bubble begins at midnight, in UTC.
func TestTimersWithASchedule(t *testing.T) {
	everyMinute := func(options ...handler.ScheduleOption) handler.BackgroundOption {
		return handler.Scheduled("* * * * *", options...)
	}
	tests := map[string]struct {
		timer  handler.BackgroundOption
		last   float64 // the run that is stored at the start, in seconds from it; 0 for none
		errors []error // of the first calls
		until  float64
		want   []string
	}{
		"every minute":            {everyMinute(), 0, nil, 150, []string{"60s run 60", "120s run 120"}},
		"another zone":            {handler.Scheduled("1 9 * * *", handler.TimeZone("Asia/Tokyo")), 0, nil, 3600 * 30, []string{"60s run 60", "86460s run 86460"}},
		"a missed run":            {everyMinute(), -300, nil, 61, []string{"0s run 0", "60s run 60"}},
		"no missed run":           {everyMinute(), -10, nil, 61, []string{"0s run 0", "60s run 60"}},
		"missed runs are skipped": {everyMinute(handler.CatchUp(0)), -300, nil, 61, []string{"60s run 60"}},
		"several missed runs":     {everyMinute(handler.CatchUp(3)), -300, nil, 61, []string{"0s run -120", "0s run -60", "0s run 0", "60s run 60"}},
		"fewer missed runs":       {everyMinute(handler.CatchUp(3)), -60, nil, 61, []string{"0s run 0", "60s run 60"}},
		"another clock was ahead": {everyMinute(), 60, nil, 121, []string{"120s run 120"}},
		"a run is repeated": {
			everyMinute(), 0,
			[]error{handler.Temporary(errDown, 10*time.Second)},
			121,
			[]string{"60s run 60", "60s a: again in 10s, down", "70s run 60", "120s run 120"},
		},
		"a run is repeated beyond the next one": {
			everyMinute(handler.CatchUp(0)), 0,
			[]error{handler.Temporary(errDown, 70*time.Second)},
			181,
			[]string{"60s run 60", "60s a: again in 1m10s, down", "130s run 60", "180s run 180"},
		},
		"the next one is missed then": {
			everyMinute(), 0,
			[]error{handler.Temporary(errDown, 70*time.Second)},
			181,
			[]string{"60s run 60", "60s a: again in 1m10s, down", "130s run 60", "130s run 120", "180s run 180"},
		},
		"a permanent error ends the run": {
			everyMinute(), 0,
			[]error{handler.Permanent(errDown)},
			121,
			[]string{"60s run 60", "60s a: failed, down", "120s run 120"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				if test.last != 0 {
					w.runs["a"] = storage.Record{Started: w.began.Add(time.Duration(test.last) * time.Second)}
				}
				calls := 0
				w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
					w.note("run %g", tick.Run.Sub(w.began).Seconds())
					calls++
					if calls <= len(test.errors) {
						return test.errors[calls-1]
					}
					return nil
				}, test.timer))
				w.until(test.until)
				w.expectLines(test.want...)
				last := w.runs["a"]
				if last.Started.IsZero() || last.Stopped.IsZero() || !last.Finished() {
					w.t.Errorf("got %+v", last)
				}
			})
		})
	}
}

var errDown = errors.New("down")

// A schedule that the object has follows its changes. One that cannot be read is an error of the object.
func TestScheduleFollowsTheObject(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		text, failure := "0 * * * *", error(nil)
		w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
			w.note("run %g", tick.Run.Sub(w.began).Seconds())
			return nil
		}, handler.ScheduleFunc(func(*handler.Call) (string, error) { return text, failure }), handler.Backoff(5*time.Second)))
		change := func(at float64, to string, err error) {
			w.until(at)
			text, failure = to, err
			w.pass(true)
			synctest.Wait()
		}
		change(10, "1 * * * *", nil)
		change(61, "2 * * * *", nil)
		change(62, "2 * * * *", nil) // another field has changed
		change(70, "soon", nil)
		change(76, "soon", errDown)
		change(82, "2 * * * *", nil)
		w.until(121)
		w.expectLines("60s run 60",
			`70s a: again in 5s, the next run is unknown: the schedule "soon" cannot be read: expected exactly 5 fields, found 1: [soon]`,
			`75s a: again in 5s, the next run is unknown: the schedule "soon" cannot be read: expected exactly 5 fields, found 1: [soon]`,
			"76s a: again in 5s, the next run is unknown: down",
			"80s a: again in 5s, the next run is unknown: down",
			"120s run 120")
	})
}

// A call that is canceled by the end of the operator has not ended the run. One that has ended meanwhile has.
func TestRunIsRepeatedIfTheOperatorEndsInIt(t *testing.T) {
	for name, test := range map[string]struct {
		err  func(ctx context.Context) error
		want bool
	}{
		"it is canceled": {context.Cause, false},
		"it is done":     {func(context.Context) error { return nil }, true},
		"it is wrong":    {func(context.Context) error { return handler.Permanent(errDown) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.match(w.timer("a", func(ctx context.Context, _ *handler.Call) error {
					<-ctx.Done()
					return test.err(ctx)
				}, handler.Scheduled("* * * * *")))
				w.until(61)
				w.exit(time.Second)
				synctest.Wait()
				if _, got := w.runs["a"]; got != test.want {
					t.Errorf("got %v", w.runs)
				}
			})
		})
	}
}
