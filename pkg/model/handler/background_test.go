package handler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
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

func TestWaitEndsWhenTheDaemonHasToReturn(t *testing.T) {
	tests := map[string]struct {
		during  func(stop *handler.Stopper, cancel func()) // the wait, after a second
		before  func(stop *handler.Stopper, cancel func())
		pause   time.Duration
		took    time.Duration
		stopped bool
		either  bool // both at the same time: whoever comes first
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

func TestATaskTellsOfItsStop(t *testing.T) {
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
		t.Error("a daemon that nobody stops is stopped")
	}
}

// The arguments of daemons and timers show the object as it is by then.
func TestLiveArguments(t *testing.T) {
	live := subject()
	body := object.NewBody(m{"metadata": m{"name": "two", "labels": m{"a": "x"}}, "spec": m{"size": int64(2)}})
	live.Live = func() *object.Body { return body }
	for name, a := range map[string]handler.Arguments{
		"a daemon": handler.NewTask(live, nil, handler.Attempt{}, nil),
		"a timer":  handler.NewTick(live, nil, handler.Attempt{}),
	} {
		t.Run(name, func(t *testing.T) {
			body = object.NewBody(m{"metadata": m{"name": "two", "labels": m{"a": "x"}}, "spec": m{"size": int64(2)}})
			if size, _ := a.Spec().Int64("size"); size != 2 || a.Name() != "two" || a.Labels()["a"] != "x" || a.Body() != body {
				t.Errorf("got %v", a.Body().Raw())
			}
			body = object.NewBody(m{"spec": m{"size": int64(3)}, "status": m{"phase": "Gone"}})
			size, _ := a.Spec().Int64("size")
			phase, _ := a.Status().String("phase")
			if size != 3 || phase != "Gone" || len(a.Labels()) != 0 || !a.New().Equals(body.Raw()) {
				t.Errorf("got %v", a.Body().Raw())
			}
		})
	}
}

func TestArgumentsOfAttempts(t *testing.T) {
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	attempt := handler.Attempt{Retry: 3, Started: began, Now: began.Add(time.Minute)}
	for name, a := range map[string]interface {
		handler.Arguments
		Retry() int
		Started() time.Time
		Runtime() time.Duration
	}{
		"a daemon": handler.NewTask(subject(), nil, attempt, nil),
		"a timer":  handler.NewTick(subject(), nil, attempt),
		"an index": handler.NewIndexed(subject(), nil, attempt),
	} {
		t.Run(name, func(t *testing.T) {
			if a.Retry() != 3 || !a.Started().Equal(began) || a.Runtime() != time.Minute {
				t.Errorf("got %d, %v, %v", a.Retry(), a.Started(), a.Runtime())
			}
			if a.Reason() != "" || a.Old().Exists() || a.Diff() != nil || !a.New().Exists() {
				t.Errorf("got %v, %v, %v, %v", a.Reason(), a.Old(), a.Diff(), a.New())
			}
			if result, ok := a.(interface {
				SetResult(any)
				Result() any
			}); ok {
				result.SetResult("a")
				if result.Result() != "a" {
					t.Errorf("got %v", result.Result())
				}
			}
		})
	}
}

// Every kind of handler finds the same values, and only if somebody asks.
func TestArgumentsHaveMemos(t *testing.T) {
	values, asked := memo.NewValues(nil), 0
	s := subject()
	s.Memo = func() *memo.Values { asked++; return values }
	all := []handler.Arguments{
		handler.NewChange(s, nil, handler.Attempt{}, handler.Transition{}, nil), handler.NewEvent(s, nil, ""),
		handler.NewTask(s, nil, handler.Attempt{}, nil), handler.NewTick(s, nil, handler.Attempt{}), handler.NewIndexed(s, nil, handler.Attempt{}),
	}
	if asked != 0 {
		t.Error("the values were asked for without need")
	}
	pings := memo.New(func() *int { return new(int) }, nil)
	for _, a := range all {
		*pings.Of(a)++
	}
	if *pings.Of(all[0]) != len(all) {
		t.Errorf("got %d", *pings.Of(all[0]))
	}
	if none := handler.NewTick(subject(), nil, handler.Attempt{}); none.Memo() != nil {
		t.Errorf("got %v", none.Memo())
	}
}

func TestCallsInTheBackground(t *testing.T) {
	failure := errors.New("no")
	task, tick := handler.NewTask(subject(), nil, handler.Attempt{}, nil), handler.NewTick(subject(), nil, handler.Attempt{})
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

func TestOptionsOfTheBackground(t *testing.T) {
	d := daemon(t, accompany, handler.InitialDelay(time.Second), handler.CancellationBackoff(2*time.Second),
		handler.CancellationTimeout(0), handler.CancellationPolling(4*time.Second), handler.Retries(5), handler.Field("spec.size"), handler.Param(6))
	if d.InitialDelay(nil) != time.Second || d.CancellationBackoff != 2*time.Second || *d.CancellationTimeout != 0 ||
		d.CancellationPolling != 4*time.Second || *d.Retries != 5 || d.ID != "fn/spec.size" || d.Param != 6 {
		t.Errorf("got %+v", d)
	}
	byName := func(a handler.Arguments) time.Duration { return time.Duration(len(a.Name())) }
	tick := timer(t, tickOnce, handler.Interval(time.Minute), handler.Sharp(), handler.Idle(time.Hour), handler.InitialDelayFunc(byName))
	if tick.Interval != time.Minute || !tick.Sharp || tick.Idle != time.Hour || tick.InitialDelay(handler.NewTick(subject(), nil, handler.Attempt{})) != 3 {
		t.Errorf("got %+v", tick)
	}
	once := timer(t, tickOnce)
	if once.Interval != 0 || once.Idle != 0 || once.InitialDelay != nil || once.CancellationTimeout != nil || once.Errors != handler.ErrorsTemporary {
		t.Errorf("got %+v", once)
	}
}

func TestRefusedHandlersInTheBackground(t *testing.T) {
	tests := map[string]struct {
		daemon []handler.DaemonOption
		timer  []handler.TimerOption
		want   string
	}{
		"a start in the past":                {daemon: []handler.DaemonOption{handler.InitialDelay(-1)}, want: "the initial delay -1ns is negative"},
		"a delay by no function":             {timer: []handler.TimerOption{handler.InitialDelayFunc(nil)}, want: "InitialDelayFunc has no function"},
		"a stop in the past":                 {daemon: []handler.DaemonOption{handler.CancellationBackoff(-time.Second)}, want: "the cancellation backoff -1s is negative"},
		"an end in the past":                 {daemon: []handler.DaemonOption{handler.CancellationTimeout(-time.Second)}, want: "the cancellation timeout -1s is negative"},
		"reports of the past":                {daemon: []handler.DaemonOption{handler.CancellationPolling(-time.Second)}, want: "the cancellation polling -1s is negative"},
		"calls in the past":                  {timer: []handler.TimerOption{handler.Interval(-time.Second)}, want: "the interval -1s is negative"},
		"calls without a pause":              {timer: []handler.TimerOption{handler.Interval(0)}, want: "the interval is 0, which would call the timer without a pause"},
		"idle in the past":                   {timer: []handler.TimerOption{handler.Idle(-time.Second)}, want: "the idle time -1s is negative"},
		"sharp without an interval":          {timer: []handler.TimerOption{handler.Sharp(), handler.Idle(1)}, want: "a timer can be sharp only with an interval: add kopf.Interval(...)"},
		"less than no attempts":              {timer: []handler.TimerOption{handler.Retries(-1)}, want: "the number of retries -1 is negative"},
		"a value without a field":            {daemon: []handler.DaemonOption{handler.Value(handler.Present())}, want: "add kopf.Field(...)"},
		"a predicate that is none":           {timer: []handler.TimerOption{handler.When(nil)}, want: "When has no function"},
		"an id under which nothing is kept":  {daemon: []handler.DaemonOption{handler.ID("a b")}, want: `under the id "a b"`},
		"an error mode that there is not":    {timer: []handler.TimerOption{handler.Errors(9)}, want: "the mode of errors 9"},
		"a backoff before the error happens": {daemon: []handler.DaemonOption{handler.Backoff(-1)}, want: "the backoff -1ns is negative"},
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
	refused(t, d, err, `the daemon handler "": there is no function to call`)
	d, err = handler.Timer(kex, handler.Function{})
	refused(t, d, err, `the timer handler "": there is no function to call`)
}

// Daemons and timers are matched by the object as it is, and not by what it was.
func TestTheBackgroundMatchesTheObjectAsItIs(t *testing.T) {
	before, after := m{"spec": m{"size": int64(1)}}, m{"spec": m{"other": int64(2)}}
	for name, test := range map[string]struct {
		o    *handler.Cause
		want bool
	}{
		"the field is there":     {occasion("update", after, before), true},
		"the field has gone":     {occasion("update", before, after), false},
		"it was never handled":   {occasion("create", nil, before), true},
		"nothing has happened":   {occasion("", before, before), true},
		"it is there no longer ": {occasion("delete", after, after), false},
	} {
		t.Run(name, func(t *testing.T) {
			agree := handler.When(func(a handler.Arguments) bool { return a.Reason() == "" && !a.Old().Exists() && a.Diff() == nil })
			for _, d := range []*handler.Declaration{
				daemon(t, accompany, handler.Field("spec.size"), agree), timer(t, tickOnce, handler.Field("spec.size"), agree),
			} {
				if d.InScope(test.o) != test.want || d.Selects(test.o) != test.want {
					t.Errorf("the %s: %v", d.Kind, d.InScope(test.o))
				}
			}
		})
	}
}

func TestKinds(t *testing.T) {
	changing := map[handler.Kind]bool{
		handler.OnCreate: true, handler.OnUpdate: true, handler.OnDelete: true, handler.OnResume: true, handler.OnField: true, handler.Subhandler: true,
		handler.OnEvent: false, handler.OnDaemon: false, handler.OnTimer: false, handler.OnIndex: false,
	}
	for kind, want := range changing {
		background := kind == handler.OnDaemon || kind == handler.OnTimer
		if kind.IsChange() != want || kind.IsBackground() != background {
			t.Errorf("%s: got %v, %v", kind, kind.IsChange(), kind.IsBackground())
		}
	}
	for _, d := range []*handler.Declaration{daemon(t, accompany), timer(t, tickOnce)} {
		if d.HoldsDeletion() {
			t.Errorf("the %s holds a deletion like a handler of deletions", d.Kind)
		}
	}
}

// An engine that has nothing but the live object can ask the filters too.
func TestFiltersSeeTheLiveObject(t *testing.T) {
	body := object.NewBody(m{"metadata": m{"labels": m{"a": "b"}, "annotations": m{"c": "d"}}, "spec": m{"size": int64(1)}})
	o := &handler.Cause{CallContext: handler.CallContext{Live: func() *object.Body { return body }}}
	present := map[string]handler.Matcher{"a": handler.Present()}
	d := timer(t, tickOnce, handler.Labels(present), handler.Annotations(map[string]handler.Matcher{"a": handler.Absent()}), handler.Field("spec.size"))
	if !d.InScope(o) {
		t.Error("it does not match")
	}
	body = object.NewBody(m{"metadata": m{"annotations": m{"a": "b"}}, "spec": m{}})
	if d.InScope(o) {
		t.Error("it matches what the object was before")
	}
}
