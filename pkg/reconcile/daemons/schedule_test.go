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

// changing is an object with a schedule that changes.
type changing struct {
	*world

	// The lock of the world guards the rest.
	text    string
	failure error
	looks   int
	call    func() error // the next call does it
	onLook  func()       // the next look does it
}

// startChanging starts a timer with the schedule of the object.
func (w *world) startChanging(text string) *changing {
	c := &changing{world: w, text: text}
	w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
		w.note("run %g", tick.Run.Sub(w.began).Seconds())
		tick.SetResult("made")
		return c.takeCall()()
	}, handler.ScheduleFunc(func(*handler.Call) (string, error) {
		c.takeLook()()
		w.mu.Lock()
		defer w.mu.Unlock()
		c.looks++
		return c.text, c.failure
	}), handler.Backoff(5*time.Second)))
	return c
}

// onCall sets what the next call does.
func (c *changing) onCall(call func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.call = call
}

// setDuration sets the duration of the next call.
func (c *changing) setDuration(d time.Duration) {
	c.onCall(func() error { time.Sleep(d); return nil })
}

// delayLook sets the duration of the next look at the schedule.
func (c *changing) delayLook(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onLook = func() { time.Sleep(d) }
}

func (c *changing) takeCall() func() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.call
	c.call = nil
	if call == nil {
		return func() error { return nil }
	}
	return call
}

func (c *changing) takeLook() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	look := c.onLook
	c.onLook = nil
	if look == nil {
		return func() {}
	}
	return look
}

// set changes the object, which no pass sees yet.
func (c *changing) set(text string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = text
	c.failure = err
}

// change changes the object, which a pass sees.
func (c *changing) change(at float64, to string, err error) {
	c.until(at)
	c.set(to, err)
	c.pass(true)
	synctest.Wait()
}

// A schedule that the object has follows its changes. One that cannot be read waits for a change. An error of the
// function is reported once, and can end without a change.
func TestScheduleFollowsTheObject(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		c := w.startChanging("0 * * * *")
		c.change(10, "1 * * * *", nil)
		c.change(61, "2 * * * *", nil)
		c.change(62, "2 * * * *", nil) // another field has changed
		c.change(70, "soon", nil)
		looks := c.looks
		c.until(3600)
		if c.looks != looks {
			t.Errorf("there were %d looks at a text that has not changed", c.looks-looks)
		}
		c.change(3601, "soon", nil)
		c.change(3602, "later", nil)
		c.change(3603, "soon", errDown)
		c.until(3620)
		c.set("2 * * * *", nil)
		w.until(3721)
		w.expectLines("60s run 60",
			`70s a: unscheduled for 0s, the schedule "soon" cannot be read: expected exactly 5 fields, found 1: [soon]`,
			`3602s a: unscheduled for 0s, the schedule "later" cannot be read: expected exactly 5 fields, found 1: [later]`,
			"3603s a: unscheduled for 5s, down",
			"3720s run 3720")
	})
}

// A schedule that has changed has runs from then on. What was due before, by any of the two, is not made up for.
func TestChangedScheduleBeginsWithTheChange(t *testing.T) {
	const noon, one = 12 * 3600, 13 * 3600
	for name, test := range map[string]struct {
		from   string
		change func(c *changing)
		until  float64
		want   []string
	}{
		"an earlier time": {"0 3 * * *", func(c *changing) { c.change(37200, "*/15 * * * *", nil) }, 37800, []string{"10800s run 10800", "37800s run 37800"}},
		"a later time of the day": {
			"0 12 * * *", func(c *changing) { c.change(54000, "0 13 * * *", nil) }, 86400 + one, []string{"43200s run 43200", "133200s run 133200"},
		},
		"another time zone": {
			"0 12 * * *", func(c *changing) { c.change(54000, "CRON_TZ=America/New_York 0 9 * * *", nil) }, 86400 + 14*3600, []string{"43200s run 43200", "136800s run 136800"},
		},
		"the same in other words": {
			"0 12 * * *", func(c *changing) { c.change(54000, "CRON_TZ=UTC 0  12 * * *", nil) }, 86400 + noon, []string{"43200s run 43200", "129600s run 129600"},
		},
		"a correction": {
			"soon", func(c *changing) { c.change(37200, "*/15 * * * *", nil) }, 37800,
			[]string{`0s a: unscheduled for 0s, the schedule "soon" cannot be read: expected exactly 5 fields, found 1: [soon]`, "37800s run 37800"},
		},
		"a correction of the function": {
			"*/15 * * * *", func(c *changing) {
				c.change(1, "", errDown)
				c.change(37200, "*/20 * * * *", nil)
			}, 38400, []string{"1s a: unscheduled for 5s, down", "38400s run 38400"},
		},
		"the end of an error": {
			"0 * * * *", func(c *changing) {
				c.change(3599, "", errDown)
				c.change(3601, "0 * * * *", nil)
			}, 3602, []string{"3599s a: unscheduled for 5s, down", "3601s run 3600"},
		},
		"a change during a run, which takes long": {
			"0 * * * *", func(c *changing) {
				c.setDuration(2 * time.Hour)
				c.change(3660, "*/15 * * * *", nil)
				c.until(10799)
			}, 10801, []string{"3600s run 3600", "10800s run 10800"},
		},
		"a change while a run is repeated": {
			"0 * * * *", func(c *changing) {
				c.onCall(func() error { return handler.Temporary(errDown, 100*time.Second) })
				c.change(3650, "*/15 * * * *", nil)
			}, 4501, []string{"3600s run 3600", "3600s a: again in 1m40s, down", "3700s run 3600", "4500s run 4500"},
		},
		"a change while the end of a run is written": {
			"0 * * * *", func(c *changing) {
				c.setWrite(func(context.Context) error { time.Sleep(20 * time.Minute); return nil })
				c.change(3700, "soon", nil)
				c.change(3800, "*/15 * * * *", nil)
			}, 5401, []string{
				"3600s run 3600",
				`3700s a: unscheduled for 0s, the schedule "soon" cannot be read: expected exactly 5 fields, found 1: [soon]`,
				"4800s run 4500",
			},
		},
		"a change while no operator was active": {
			"0 * * * *", func(c *changing) {
				c.until(3601)
				c.group.Suspend()
				c.until(9000)
				c.change(9000, "*/30 * * * *", nil)
			}, 10800, []string{"3600s run 3600", "10800s run 10800"},
		},
		"no change while no operator was active": {
			"0 * * * *", func(c *changing) {
				c.until(3601)
				c.group.Suspend()
				c.until(9000)
				c.change(9000, "0 * * * *", nil)
			}, 9001, []string{"3600s run 3600", "9000s run 7200"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				test.change(w.startChanging(test.from))
				w.until(test.until)
				w.expectLines(test.want...)
			})
		})
	}
}

// The schedule of the last run is stored with it, so that an operator that starts knows whether the runs after it were of
// the schedule that the object has now.
func TestScheduleIsKnownAfterARestart(t *testing.T) {
	const last = "CRON_TZ=UTC 0 3 * * *"
	fixed := handler.Scheduled
	for name, test := range map[string]struct {
		stored string
		timer  handler.BackgroundOption
		want   []string
	}{
		"the same":             {last, fixed("0 3 * * *"), []string{"0s run -75600", "10800s run 10800"}},
		"unknown":              {"", fixed("0 3 * * *"), []string{"0s run -75600", "10800s run 10800"}},
		"another one":          {last, fixed("0 4 * * *"), []string{"14400s run 14400"}},
		"in another time zone": {last, fixed("0 3 * * *", handler.TimeZone("Europe/London")), []string{"10800s run 10800"}},
		"another one of the object": {
			last, handler.ScheduleFunc(func(*handler.Call) (string, error) { return "0 4 * * *", nil }), []string{"14400s run 14400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.runs["a"] = storage.Record{Started: w.began.Add(-2 * 24 * time.Hour), Schedule: test.stored}
				w.match(w.timer("a", func(_ context.Context, tick *handler.Call) error {
					w.note("run %g", tick.Run.Sub(w.began).Seconds())
					return nil
				}, test.timer))
				w.until(5 * 3600)
				w.expectLines(test.want...)
				if got := w.runs["a"].Schedule; got == "" || test.stored == last && (got == last) != (name == "the same") {
					t.Errorf("stored %s", got)
				}
			})
		})
	}
}

// A call can end while a pass looks at the schedule of an earlier version of the object.
func TestRunIsNotRepeatedAfterASlowLook(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		c := w.startChanging("0 * * * *")
		c.until(3598)
		c.delayLook(5 * time.Second)
		go c.pass(true)
		c.until(7201)
		w.expectLines("3600s run 3600", "7200s run 7200")
	})
}

// The function can fail when an operator starts. If it then returns the schedule of the last run, nothing has changed.
func TestScheduleIsKnownAfterAnErrorAtTheStart(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.runs["a"] = storage.Record{Started: w.began.Add(-2 * 24 * time.Hour), Schedule: "CRON_TZ=UTC 0 3 * * *"}
		c := w.startChanging("0 3 * * *")
		c.set("0 3 * * *", errDown)
		w.group.Suspend()
		c.change(1, "0 3 * * *", errDown)
		c.change(2, "0 3 * * *", nil)
		w.until(3)
		w.expectLines("1s a: unscheduled for 5s, down", "2s run -75600")
	})
}

// A run that ends after the schedule has changed is still one of the former schedule.
func TestRunIsStoredWithItsSchedule(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		c := w.startChanging("0 * * * *")
		c.setDuration(2 * time.Hour)
		c.change(3660, "*/15 * * * *", nil)
		c.until(10799)
		c.set("*/20 * * * *", nil)
		c.until(10801)
		if got := w.runs["a"]; got.Schedule != "CRON_TZ=UTC 0 * * * *" || !got.Started.Equal(w.began.Add(time.Hour)) {
			t.Errorf("got %+v", got)
		}
		w.expectLines("3600s run 3600")
	})
}

// A success has a line of the log, and no event.
func TestSuccessOfARunIsReported(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		calls := 0
		w.match(w.timer("a", func(context.Context, *handler.Call) error {
			calls++
			if calls == 1 {
				return handler.Temporary(errDown, time.Second)
			}
			return nil
		}, handler.Scheduled("* * * * *")))
		w.until(121)
		w.expect("60s a: again in 1s, down", "61s a: run 60 succeeded", "120s a: run 120 succeeded")
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

// The object in memory can be older than the end of a run.
func TestRunIsNotRepeatedWhileTheObjectIsLate(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		c := w.startChanging("0 * * * *")
		c.until(3601)
		w.mu.Lock()
		delete(w.runs, "a")
		w.mu.Unlock()
		c.change(3602, "0 * * * *", nil)
		c.until(7201)
		w.expectLines("3600s run 3600", "7200s run 7200")
	})
}
