package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

func accompany(context.Context, *handler.Call) error { return nil }

func tickOnce(context.Context, *handler.Call) error { return nil }

func daemon(t testing.TB, fn func(context.Context, *handler.Call) error, options ...handler.BackgroundOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Daemon(kex, functionOf(fn), append(options, handler.ID("fn"))...)
	return declared(t, d, err)
}

func timer(t testing.TB, fn func(context.Context, *handler.Call) error, options ...handler.BackgroundOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Timer(kex, functionOf(fn), append(options, handler.ID("fn"))...)
	return declared(t, d, err)
}

// background is the engine of a daemon. The context is optional.
type background struct {
	handler.Background
	stopper *handler.Stopper
	ctx     context.Context
	changed chan struct{}
}

func (b background) Stopper() *handler.Stopper { return b.stopper }

func (b background) Changed() <-chan struct{} { return b.changed }

func (b background) Done() <-chan struct{} {
	if b.ctx == nil {
		return nil
	}
	return b.ctx.Done()
}

func TestWaitEndsWhenTheDaemonMustReturn(t *testing.T) {
	tests := map[string]struct {
		during  func(stop *handler.Stopper, cancel func()) // the wait, after a second
		before  func(stop *handler.Stopper, cancel func())
		pause   time.Duration
		took    time.Duration
		stopped bool
		either  bool // both happen at the same time, so either result is valid
	}{
		"nothing happens":                 {pause: time.Minute, took: time.Minute},
		"there is no pause":               {},
		"it is stopped meanwhile":         {during: stopping, pause: time.Hour, took: time.Second, stopped: true},
		"it was stopped before":           {before: stopping, pause: time.Hour, stopped: true},
		"it was stopped, without a pause": {before: stopping, stopped: true},
		"it is stopped at the very end":   {during: stopping, pause: time.Second, took: time.Second, either: true},
		"its context is done meanwhile":   {during: cancel, pause: time.Hour, took: time.Second, stopped: true},
		"its context was done before":     {before: cancel, pause: time.Hour, stopped: true},
		"the context, without a pause":    {before: cancel, stopped: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stopper := handler.NewStopper()
				if test.during != nil {
					time.AfterFunc(time.Second, func() { test.during(stopper, cancel) })
				}
				d := daemon(t, func(_ context.Context, task *handler.Call) error {
					if test.before != nil {
						test.before(stopper, cancel)
					}
					began := time.Now()
					if got := task.Wait(test.pause); time.Since(began) != test.took || (got != test.stopped && !test.either) {
						t.Errorf("got %v after %s", got, time.Since(began))
					}
					return nil
				})
				call := handler.NewCall(d, subject(), handler.Attempt{})
				call.Background = background{stopper: stopper, ctx: ctx}
				if _, err := d.Call(ctx, call); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A change ends only the wait for one, and once. A request to stop wins.
func TestWaitForChangeEndsWhenSomethingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := background{stopper: handler.NewStopper(), changed: make(chan struct{}, 1)}
		task := handler.NewCall(&handler.Declaration{Kind: handler.OnDaemon}, subject(), handler.Attempt{})
		task.Background = b
		took := func(wait func(time.Duration) bool) time.Duration {
			began := time.Now()
			if wait(time.Hour) {
				t.Error("it is stopped")
			}
			return time.Since(began)
		}
		b.changed <- struct{}{}
		if got := took(task.Wait); got != time.Hour {
			t.Errorf("a pause ends after %s", got)
		}
		if got := took(task.WaitForChange); got != 0 {
			t.Errorf("the change is seen after %s", got)
		}
		if got := took(task.WaitForChange); got != time.Hour {
			t.Errorf("the change is seen again after %s", got)
		}
		for range 100 {
			b.changed <- struct{}{}
			b.stopper.Stop(stop.Exiting)
			if !task.WaitForChange(time.Hour) {
				t.Fatal("the request to stop is not seen")
			}
			select {
			case <-b.changed:
			default:
			}
		}
	})
}

func stopping(stopper *handler.Stopper, _ func()) { stopper.Stop(stop.Deleted) }

func cancel(_ *handler.Stopper, cancel func()) { cancel() }

func TestTaskReportsItsStop(t *testing.T) {
	stopper := handler.NewStopper()
	task := handler.NewCall(&handler.Declaration{Kind: handler.OnDaemon}, subject(), handler.Attempt{})
	task.Background = background{stopper: stopper}
	if closed(task.Stopped()) || task.StopReason() != 0 {
		t.Errorf("got %s", task.StopReason())
	}
	stopper.Stop(stop.Exiting)
	if !closed(task.Stopped()) || task.StopReason() != stop.Exiting || !task.Wait(time.Hour) {
		t.Errorf("got %s", task.StopReason())
	}
	for range 100 { // the end of the pause and the request to stop are there at the same time
		if !task.Wait(0) {
			t.Fatal("the request is not seen")
		}
	}
	if alone := handler.NewCall(&handler.Declaration{Kind: handler.OnDaemon}, subject(), handler.Attempt{}); closed(alone.Stopped()) || alone.StopReason() != 0 || alone.Wait(0) {
		t.Error("a daemon without a stopper is stopped")
	}
}

func TestWaitSeesTheEndOfTheContextAfterThePause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := daemon(t, func(_ context.Context, task *handler.Call) error {
		for range 100 {
			if !task.Wait(0) {
				return errors.New("the end is not seen")
			}
		}
		return nil
	})
	call := handler.NewCall(d, subject(), handler.Attempt{})
	call.Background = background{stopper: handler.NewStopper(), ctx: ctx}
	if _, err := d.Call(ctx, call); err != nil {
		t.Error(err)
	}
}

func TestErrorsAndPanicsOfBackgroundHandlersAreReturned(t *testing.T) {
	failure := errors.New("no")
	fails := func(context.Context, *handler.Call) error { return failure }
	panics := func(context.Context, *handler.Call) error { panic(failure) }
	tests := map[string]struct {
		declared *handler.Declaration
		panic    bool
	}{
		"a daemon that fails":  {daemon(t, fails), false},
		"a daemon that panics": {daemon(t, panics), true},
		"a timer that fails":   {timer(t, fails), false},
		"a timer that panics":  {timer(t, panics), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.declared.Call(t.Context(), handler.NewCall(test.declared, subject(), handler.Attempt{}))
			var panicked *handler.PanicError
			if !errors.Is(err, failure) || errors.As(err, &panicked) != test.panic {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBackgroundOptionsAreApplied(t *testing.T) {
	d := daemon(t, accompany, handler.InitialDelay(time.Second), handler.CancellationBackoff(2*time.Second),
		handler.CancellationTimeout(0), handler.CancellationPolling(4*time.Second), handler.Retries(5), handler.Field("spec.size"), handler.Param(6))
	if d.InitialDelay(nil) != time.Second || d.CancellationBackoff != 2*time.Second || *d.CancellationTimeout != 0 ||
		d.CancellationPolling != 4*time.Second || *d.Retries != 5 || d.ID != "fn/spec.size" || d.Param != 6 {
		t.Errorf("got %+v", d)
	}
	byName := func(a *handler.Call) time.Duration { return time.Duration(len(a.Name())) }
	tick := timer(t, tickOnce, handler.Interval(time.Minute), handler.Sharp(), handler.Idle(time.Hour), handler.InitialDelayFunc(byName))
	if tick.Interval != time.Minute || !tick.Sharp || tick.Idle != time.Hour || tick.InitialDelay(handler.NewCall(tick, subject(), handler.Attempt{})) != 3 {
		t.Errorf("got %+v", tick)
	}
	once := timer(t, tickOnce)
	if once.Interval != 0 || once.Idle != 0 || once.InitialDelay != nil || once.CancellationTimeout != nil || once.Errors != handler.ErrorsTemporary {
		t.Errorf("got %+v", once)
	}
}

func TestInvalidBackgroundHandlersAreRejected(t *testing.T) {
	tests := map[string]struct {
		daemon []handler.BackgroundOption
		timer  []handler.BackgroundOption
		want   string
	}{
		"a negative initial delay":        {daemon: []handler.BackgroundOption{handler.InitialDelay(-1)}, want: "the initial delay -1ns is negative"},
		"a missing delay function":        {timer: []handler.BackgroundOption{handler.InitialDelayFunc(nil)}, want: "the function of InitialDelayFunc is nil"},
		"a negative cancellation backoff": {daemon: []handler.BackgroundOption{handler.CancellationBackoff(-time.Second)}, want: "the cancellation backoff -1s is negative"},
		"a negative cancellation timeout": {daemon: []handler.BackgroundOption{handler.CancellationTimeout(-time.Second)}, want: "the cancellation timeout -1s is negative"},
		"a negative polling interval":     {daemon: []handler.BackgroundOption{handler.CancellationPolling(-time.Second)}, want: "the cancellation polling -1s is negative"},
		"a negative interval":             {timer: []handler.BackgroundOption{handler.Interval(-time.Second)}, want: "the interval -1s is negative"},
		"an interval of zero":             {timer: []handler.BackgroundOption{handler.Interval(0)}, want: "the interval is 0, which would call the timer without a delay"},
		"a missing interval function":     {timer: []handler.BackgroundOption{handler.IntervalFunc(nil)}, want: "the function of IntervalFunc is nil"},
		"two intervals":                   {timer: []handler.BackgroundOption{handler.Interval(1), handler.IntervalFunc(minutely)}, want: "kopf.Interval and kopf.IntervalFunc are both set"},
		"a schedule that is none":         {timer: []handler.BackgroundOption{handler.Scheduled("daily")}, want: `the schedule "daily" cannot be read`},
		"a schedule with an interval":     {timer: []handler.BackgroundOption{handler.Scheduled("@every 1h")}, want: "use kopf.Interval"},
		"a schedule beside an interval":   {timer: []handler.BackgroundOption{handler.Scheduled("@daily"), handler.Interval(1)}, want: "a timer with a schedule has no interval"},
		"a schedule beside an idle time":  {timer: []handler.BackgroundOption{handler.Scheduled("@daily"), handler.Idle(1)}, want: "a timer with a schedule has no interval, idle time"},
		"a delayed schedule":              {timer: []handler.BackgroundOption{handler.Scheduled("@daily"), handler.InitialDelay(1)}, want: "a timer with a schedule has no interval, idle time, or initial delay"},
		"a sharp schedule":                {timer: []handler.BackgroundOption{handler.Scheduled("@daily"), handler.Sharp()}, want: "a timer can be sharp only with an interval"},
		"two schedules":                   {timer: []handler.BackgroundOption{handler.Scheduled("@daily"), handler.Scheduled("@weekly")}, want: "it has two schedules"},
		"a missing schedule function":     {timer: []handler.BackgroundOption{handler.ScheduleFunc(nil)}, want: "the function of ScheduleFunc is nil"},
		"an unknown time zone":            {timer: []handler.BackgroundOption{handler.Scheduled("@daily", handler.TimeZone("Mars"))}, want: `the time zone "Mars" is not known here`},
		"a negative number of runs":       {timer: []handler.BackgroundOption{handler.Scheduled("@daily", handler.CatchUp(-1))}, want: "kopf.CatchUp(-1) is negative"},
		"an empty option of a schedule":   {timer: []handler.BackgroundOption{handler.Scheduled("@daily", handler.ScheduleOption{})}, want: "one of the options of kopf.Schedule is empty"},
		"a negative idle time":            {timer: []handler.BackgroundOption{handler.Idle(-time.Second)}, want: "the idle time -1s is negative"},
		"sharp without an interval":       {timer: []handler.BackgroundOption{handler.Sharp(), handler.Idle(1)}, want: "a timer can be sharp only with an interval: add kopf.Interval(...)"},
		"a negative number of attempts":   {timer: []handler.BackgroundOption{handler.Retries(-1)}, want: "kopf.Retries(-1) allows no attempt"},
		"a value without a field":         {daemon: []handler.BackgroundOption{handler.Value(handler.Present())}, want: "add kopf.Field(...)"},
		"a nil predicate":                 {timer: []handler.BackgroundOption{whenOf(nil)}, want: "the predicate of When is nil"},
		"an id that cannot be stored":     {daemon: []handler.BackgroundOption{handler.ID("a b")}, want: `under the id "a b"`},
		"an unknown error mode":           {timer: []handler.BackgroundOption{handler.Errors(9)}, want: "invalid mode of errors 9"},
		"a negative backoff":              {daemon: []handler.BackgroundOption{handler.Backoff(-1)}, want: "the backoff -1ns is negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.daemon != nil {
				d, err := handler.Daemon(kex, functionOf(accompany), test.daemon...)
				refused(t, d, err, "the daemon handler", "handler/background_test.go:", test.want)
				return
			}
			d, err := handler.Timer(kex, functionOf(tickOnce), test.timer...)
			refused(t, d, err, "the timer handler", "handler/background_test.go:", test.want)
		})
	}
	d, err := handler.Daemon(kex, handler.Function{})
	refused(t, d, err, `the daemon handler "": the function is nil`)
	d, err = handler.Timer(kex, handler.Function{})
	refused(t, d, err, `the timer handler "": the function is nil`)
}

func minutely(*handler.Call) time.Duration { return time.Minute }

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestStopperAddsReasons(t *testing.T) {
	for name, stopper := range map[string]*handler.Stopper{"new": handler.NewStopper(), "zero": {}} {
		t.Run(name, func(t *testing.T) {
			done := stopper.Done()
			if closed(done) || stopper.Reason() != 0 {
				t.Errorf("stopped: %s", stopper.Reason())
			}
			stopper.Stop(stop.Mismatch)
			stopper.Stop(stop.Mismatch)
			stopper.Stop(stop.Canceled)
			if !closed(done) || !closed(stopper.Done()) || stopper.Reason() != stop.Mismatch|stop.Canceled {
				t.Errorf("got %s", stopper.Reason())
			}
		})
	}
}

func TestStopperIsSafeForConcurrentUse(t *testing.T) {
	var stopper handler.Stopper
	var all sync.WaitGroup
	for bit := range 7 {
		for range 10 {
			all.Go(func() { <-stopper.Done() })
			all.Go(func() { stopper.Stop(1 << bit) })
		}
	}
	all.Wait()
	if stopper.Reason() != 0x7f {
		t.Errorf("got %s", stopper.Reason())
	}
}

func TestSchedulesAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		options []handler.ScheduleOption
		want    string // in the error; empty for none
	}{
		"a schedule":              {"0 3 * * *", nil, ""},
		"with all options":        {"0 3 * * *", []handler.ScheduleOption{handler.TimeZone("Europe/Berlin"), handler.CatchUp(3)}, ""},
		"a mistake":               {"0 25 * * *", nil, "cannot be read"},
		"a day that never is":     {"0 0 30 2 *", nil, "never runs"},
		"an unknown zone":         {"0 3 * * *", []handler.ScheduleOption{handler.TimeZone("Mars")}, `the time zone "Mars" is not known here`},
		"an unknown zone in it":   {"CRON_TZ=Mars 0 3 * * *", nil, `the time zone "Mars" is not known here`},
		"an option that is empty": {"0 3 * * *", []handler.ScheduleOption{{}}, "one of the options of kopf.CheckSchedule is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			err := handler.CheckSchedule(test.text, test.options...)
			if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
