package handler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

func accompany(context.Context, *handler.Task) error { return nil }

func tickOnce(context.Context, *handler.Tick) error { return nil }

func daemon(t testing.TB, fn handler.DaemonFunc, options ...handler.DaemonOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Daemon(kex, handler.Function{Daemon: fn}, append(options, handler.ID("fn"))...)
	return declared(t, d, err)
}

func timer(t testing.TB, fn handler.TimerFunc, options ...handler.TimerOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Timer(kex, handler.Function{Timer: fn}, append(options, handler.ID("fn"))...)
	return declared(t, d, err)
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
		"it is stopped meanwhile":         {during: stop, pause: time.Hour, took: time.Second, stopped: true},
		"it was stopped before":           {before: stop, pause: time.Hour, stopped: true},
		"it was stopped, without a pause": {before: stop, stopped: true},
		"it is stopped at the very end":   {during: stop, pause: time.Second, took: time.Second, either: true},
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
				d := daemon(t, func(_ context.Context, task *handler.Task) error {
					if test.before != nil {
						test.before(stopper, cancel)
					}
					began := time.Now()
					if got := task.Wait(test.pause); time.Since(began) != test.took || (got != test.stopped && !test.either) {
						t.Errorf("got %v after %s", got, time.Since(began))
					}
					return nil
				})
				if err := d.CallDaemon(ctx, handler.NewTask(subject(), nil, handler.Attempt{}, stopper)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func stop(stop *handler.Stopper, _ func()) { stop.Stop(handler.StopDeleted) }

func cancel(_ *handler.Stopper, cancel func()) { cancel() }

func TestTaskReportsItsStop(t *testing.T) {
	stopper := handler.NewStopper()
	task := handler.NewTask(subject(), nil, handler.Attempt{}, stopper)
	if closed(task.Stopped()) || task.StopReason() != 0 {
		t.Errorf("got %s", task.StopReason())
	}
	stopper.Stop(handler.StopExiting)
	if !closed(task.Stopped()) || task.StopReason() != handler.StopExiting || !task.Wait(time.Hour) {
		t.Errorf("got %s", task.StopReason())
	}
	if alone := handler.NewTask(subject(), nil, handler.Attempt{}, nil); closed(alone.Stopped()) || alone.Wait(0) {
		t.Error("a daemon without a stopper is stopped")
	}
}

func TestErrorsAndPanicsOfBackgroundHandlersAreReturned(t *testing.T) {
	failure := errors.New("no")
	task, tick := handler.NewTask(subject(), nil, handler.Attempt{}, nil), handler.NewTick(subject(), nil, handler.Attempt{}, nil)
	tests := map[string]struct {
		call  func() error
		panic bool
	}{
		"a daemon that fails": {func() error {
			return daemon(t, func(context.Context, *handler.Task) error { return failure }).CallDaemon(t.Context(), task)
		}, false},
		"a daemon that panics": {func() error {
			return daemon(t, func(context.Context, *handler.Task) error { panic(failure) }).CallDaemon(t.Context(), task)
		}, true},
		"a timer that fails": {func() error {
			return timer(t, func(context.Context, *handler.Tick) error { return failure }).CallTimer(t.Context(), tick)
		}, false},
		"a timer that panics": {func() error {
			return timer(t, func(context.Context, *handler.Tick) error { panic(failure) }).CallTimer(t.Context(), tick)
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.call()
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
	byName := func(a handler.Arguments) time.Duration { return time.Duration(len(a.Name())) }
	tick := timer(t, tickOnce, handler.Interval(time.Minute), handler.Sharp(), handler.Idle(time.Hour), handler.InitialDelayFunc(byName))
	if tick.Interval != time.Minute || !tick.Sharp || tick.Idle != time.Hour || tick.InitialDelay(handler.NewTick(subject(), nil, handler.Attempt{}, nil)) != 3 {
		t.Errorf("got %+v", tick)
	}
	once := timer(t, tickOnce)
	if once.Interval != 0 || once.Idle != 0 || once.InitialDelay != nil || once.CancellationTimeout != nil || once.Errors != handler.ErrorsTemporary {
		t.Errorf("got %+v", once)
	}
}

func TestInvalidBackgroundHandlersAreRejected(t *testing.T) {
	tests := map[string]struct {
		daemon []handler.DaemonOption
		timer  []handler.TimerOption
		want   string
	}{
		"a negative initial delay":        {daemon: []handler.DaemonOption{handler.InitialDelay(-1)}, want: "the initial delay -1ns is negative"},
		"a missing delay function":        {timer: []handler.TimerOption{handler.InitialDelayFunc(nil)}, want: "the function of InitialDelayFunc is nil"},
		"a negative cancellation backoff": {daemon: []handler.DaemonOption{handler.CancellationBackoff(-time.Second)}, want: "the cancellation backoff -1s is negative"},
		"a negative cancellation timeout": {daemon: []handler.DaemonOption{handler.CancellationTimeout(-time.Second)}, want: "the cancellation timeout -1s is negative"},
		"a negative polling interval":     {daemon: []handler.DaemonOption{handler.CancellationPolling(-time.Second)}, want: "the cancellation polling -1s is negative"},
		"a negative interval":             {timer: []handler.TimerOption{handler.Interval(-time.Second)}, want: "the interval -1s is negative"},
		"an interval of zero":             {timer: []handler.TimerOption{handler.Interval(0)}, want: "the interval is 0, which would call the timer without a delay"},
		"a negative idle time":            {timer: []handler.TimerOption{handler.Idle(-time.Second)}, want: "the idle time -1s is negative"},
		"sharp without an interval":       {timer: []handler.TimerOption{handler.Sharp(), handler.Idle(1)}, want: "a timer can be sharp only with an interval: add kopf.Interval(...)"},
		"a negative number of attempts":   {timer: []handler.TimerOption{handler.Retries(-1)}, want: "kopf.Retries(-1) allows no attempt"},
		"a value without a field":         {daemon: []handler.DaemonOption{handler.Value(handler.Present())}, want: "add kopf.Field(...)"},
		"a nil predicate":                 {timer: []handler.TimerOption{handler.When(nil)}, want: "the predicate of When is nil"},
		"an id that cannot be stored":     {daemon: []handler.DaemonOption{handler.ID("a b")}, want: `under the id "a b"`},
		"an unknown error mode":           {timer: []handler.TimerOption{handler.Errors(9)}, want: "invalid mode of errors 9"},
		"a negative backoff":              {daemon: []handler.DaemonOption{handler.Backoff(-1)}, want: "the backoff -1ns is negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.daemon != nil {
				d, err := handler.Daemon(kex, handler.Function{Daemon: accompany}, test.daemon...)
				refused(t, d, err, "the daemon handler", "handler/background_test.go:", test.want)
				return
			}
			d, err := handler.Timer(kex, handler.Function{Timer: tickOnce}, test.timer...)
			refused(t, d, err, "the timer handler", "handler/background_test.go:", test.want)
		})
	}
	d, err := handler.Daemon(kex, handler.Function{})
	refused(t, d, err, `the daemon handler "": the function is nil`)
	d, err = handler.Timer(kex, handler.Function{})
	refused(t, d, err, `the timer handler "": the function is nil`)
}

func TestStopReasonsAreASet(t *testing.T) {
	tests := map[string]struct {
		reason handler.StopReason
		want   string
	}{
		"none":    {0, ""},
		"one":     {handler.StopPaused, "paused"},
		"several": {handler.StopCanceled | handler.StopDeleted, "deleted|canceled"},
		"all":     {0x7f, "deleted|mismatch|paused|exiting|signaled|canceled|abandoned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.reason.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	both := handler.StopDeleted | handler.StopSignaled
	if !both.Has(handler.StopDeleted) || !both.Has(both) || both.Has(handler.StopDeleted|handler.StopExiting) || both.Has(handler.StopPaused) {
		t.Errorf("%s contains another reason", both)
	}
}

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
			stopper.Stop(handler.StopMismatch)
			stopper.Stop(handler.StopMismatch)
			stopper.Stop(handler.StopCanceled)
			if !closed(done) || !closed(stopper.Done()) || stopper.Reason() != handler.StopMismatch|handler.StopCanceled {
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

func TestTickReportsItsStop(t *testing.T) {
	stopper := handler.NewStopper()
	tick := handler.NewTick(subject(), nil, handler.Attempt{}, stopper)
	if closed(tick.Stopped()) || tick.StopReason() != 0 {
		t.Errorf("got %s", tick.StopReason())
	}
	stopper.Stop(handler.StopDeleted)
	if !closed(tick.Stopped()) || tick.StopReason() != handler.StopDeleted {
		t.Errorf("got %s", tick.StopReason())
	}
	alone := handler.NewTick(subject(), nil, handler.Attempt{}, nil)
	if closed(alone.Stopped()) || alone.StopReason() != 0 {
		t.Error("a timer without a stopper is stopped")
	}
}
