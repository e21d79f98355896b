package handler

import (
	"context"
	"runtime/debug"
)

// Call calls the handler of a change. A panic becomes a PanicError.
func (d *Declaration) Call(ctx context.Context, c *Change) (err error) {
	defer recoverPanic(&err)
	return d.onChange(ctx, c)
}

// CallEvent calls the handler of a watch event. A panic becomes a PanicError.
func (d *Declaration) CallEvent(ctx context.Context, e *Event) (err error) {
	defer recoverPanic(&err)
	return d.onEvent(ctx, e)
}

// CallDaemon calls a daemon. A panic becomes a PanicError.
func (d *Declaration) CallDaemon(ctx context.Context, t *Task) (err error) {
	defer recoverPanic(&err)
	t.contextDone = ctx.Done()
	return d.onDaemon(ctx, t)
}

// CallTimer calls a timer. A panic becomes a PanicError.
func (d *Declaration) CallTimer(ctx context.Context, t *Tick) (err error) {
	defer recoverPanic(&err)
	return d.onTimer(ctx, t)
}

// CallIndex calls an indexing function. A panic becomes a PanicError.
func (d *Declaration) CallIndex(ctx context.Context, i *Indexed) (values any, err error) {
	defer recoverPanic(&err)
	return d.onIndex(ctx, i)
}

// CallActivity calls the handler of an activity. A panic becomes a PanicError.
func (d *Declaration) CallActivity(ctx context.Context, a *Activity) (result any, err error) {
	defer recoverPanic(&err)
	return d.onActivity(ctx, a)
}

// CallAdmission calls a handler of admission reviews. A panic becomes a PanicError.
func (d *Declaration) CallAdmission(ctx context.Context, a *Admission) (err error) {
	defer recoverPanic(&err)
	return d.onAdmission(ctx, a)
}

// WithRecover calls what calls the developer's code, such as filters, beside the
// handlers themselves. A panic becomes a PanicError.
func WithRecover(call func() error) (err error) {
	defer recoverPanic(&err)
	return call()
}

func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

// Under makes the declaration a sub-handler of another one.
func (d *Declaration) Under(parent *Declaration) *Declaration {
	child := *d
	child.ID = parent.ID + "/" + d.ID
	child.top = parent.Top()
	return &child
}

// Top is the declaration that was made before anything was called: of a
// sub-handler, that of the handler above it, and above that one; of others, itself.
func (d *Declaration) Top() *Declaration {
	if d.top == nil {
		return d
	}
	return d.top
}
