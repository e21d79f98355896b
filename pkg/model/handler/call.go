package handler

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/kopf-go/kopf/pkg/internal/isolate"
	"github.com/kopf-go/kopf/pkg/model/internal/function"
)

// Call calls a change handler, or a handler that ForCall has returned. A panic becomes a
// PanicError. The caller must expect that the handler ends the goroutine (runtime.Goexit).
func (d *Declaration) Call(ctx context.Context, c *Change) error {
	switch {
	case d.childCall != nil:
		return CallChild(ctx, d, NewChildChange(c, d.childCall()))
	case d.OnMisfit == CallUntyped:
		return call(ctx, d, untyped(d), c)
	default:
		return call(ctx, d, d.onChange, c)
	}
}

// untyped returns the function of a handler that is called also for objects that do not fit
// its Go type.
func untyped(d *Declaration) ChangeFunc {
	return func(ctx context.Context, c *Change) error {
		c.misfit = d.misfitOf(c.Body())
		return d.onChange(ctx, c)
	}
}

// CallEvent calls an event handler. A panic becomes a PanicError, and runtime.Goexit
// ErrExited.
func (d *Declaration) CallEvent(ctx context.Context, e *Event) error {
	return WithRecover(func() error { return call(ctx, d, d.onEvent, e) })
}

// CallDaemon calls a daemon. A panic becomes a PanicError. The caller must expect that the
// daemon ends the goroutine.
//
// Thousands of daemons wait in it, each on a stack of two kilobytes if all frames fit in. So this
// frame is small, and there is none between it and the daemon.
func (d *Declaration) CallDaemon(ctx context.Context, t *Task) (err error) {
	t.contextDone = ctx.Done()
	if IsObserved(ctx) {
		return callObserved(ctx, d, d.onDaemon, t)
	}
	defer recoverPanic(&err)
	err = d.onDaemon(ctx, t)
	if err != nil {
		read(err)
	}
	return err
}

// CallTimer calls a timer. A panic becomes a PanicError. The caller must expect that the
// timer ends the goroutine.
func (d *Declaration) CallTimer(ctx context.Context, t *Tick) error {
	return call(ctx, d, d.onTimer, t)
}

// CallAdmission calls an admission handler. A panic becomes a PanicError, and runtime.Goexit
// ErrExited.
func (d *Declaration) CallAdmission(ctx context.Context, a *Admission) error {
	return WithRecover(func() error { return call(ctx, d, d.onAdmission, a) })
}

// CallChild calls a handler of children, as Call does.
func CallChild(ctx context.Context, d *Declaration, c *ChildChange) error {
	return call(ctx, d, d.onChild, c)
}

// CallIndex calls an indexing function. A panic becomes a PanicError, and runtime.Goexit
// ErrExited.
func (d *Declaration) CallIndex(ctx context.Context, i *Indexed) (values any, err error) {
	defer observe(ctx, d, i)(&err)
	err = WithRecover(func() (err error) {
		values, err = d.onIndex(ctx, i)
		if err != nil {
			read(err)
		}
		return err
	})
	return values, err
}

// CallActivity calls an activity handler. A panic becomes a PanicError, and runtime.Goexit
// ErrExited.
func (d *Declaration) CallActivity(ctx context.Context, a *Activity) (result any, err error) {
	defer observe(ctx, d, a)(&err)
	err = WithRecover(func() (err error) {
		result, err = d.onActivity(ctx, a)
		if err != nil {
			read(err)
		}
		return err
	})
	return result, err
}

// call calls a handler. Thousands of handlers can wait in it, each on a stack of two kilobytes
// if its frames fit in, so this frame is small.
func call[A any, F ~func(context.Context, A) error](ctx context.Context, d *Declaration, fn F, arguments A) (err error) {
	if IsObserved(ctx) {
		return callObserved(ctx, d, fn, arguments)
	}
	defer recoverPanic(&err)
	err = fn(ctx, arguments)
	if err != nil {
		read(err) // in the goroutine of the handler
	}
	return err
}

func callObserved[A any, F ~func(context.Context, A) error](ctx context.Context, d *Declaration, fn F, arguments A) (err error) {
	err = ErrExited // unless the handler returns
	defer observe(ctx, d, arguments)(&err)
	defer recoverPanic(&err)
	err = fn(ctx, arguments)
	if err != nil {
		read(err)
	}
	return err
}

// Observer is told about every call of a handler, with its arguments, and returns a function
// that is told the error. It must be safe for concurrent use.
type Observer func(d *Declaration, arguments any) (end func(error))

type observerKey struct{}

// WithObserver returns a context in which calls of handlers are observed. The test kit uses
// it; an operator passes the values of its context on to all calls.
func WithObserver(ctx context.Context, observer Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observer)
}

// IsObserved reports whether calls are observed: the operator runs in the test kit.
func IsObserved(ctx context.Context) bool { return ctx.Value(observerKey{}) != nil }

// observe reports a call. The function reports its error.
func observe(ctx context.Context, d *Declaration, arguments any) func(err *error) {
	observer, ok := ctx.Value(observerKey{}).(Observer)
	if !ok {
		return func(*error) {}
	}
	end := observer(d, arguments)
	return func(err *error) { end(*err) }
}

// WithRecover calls the code of users, such as filters. A panic becomes a PanicError, and
// runtime.Goexit ErrExited.
func WithRecover(call func() error) (err error) {
	returned := isolate.Run(func() {
		defer recoverPanic(&err)
		err = call()
	})
	if !returned {
		return ErrExited
	}
	return err
}

// Start is WithRecover for callers that do not wait: the channel gets the error.
func Start(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := ErrExited // unless the code returns
		defer func() { done <- err }()
		defer recoverPanic(&err)
		err = call()
	}()
	return done
}

// Readable returns an error whose text can be read. The methods of errors are the code of users, too:
// a nil pointer in an error panics when it is logged.
func Readable(err error) error {
	if err == nil {
		return nil
	}
	if unreadable := WithRecover(func() error { read(err); return nil }); unreadable != nil {
		return unreadable
	}
	return err
}

// read calls the methods of an error.
func read(err error) {
	_ = err.Error()
	_ = errors.Is(err, ErrExited)
	_ = errors.As(err, new(*PanicError))
}

func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: function.TrimStack(debug.Stack())}
	}
}
