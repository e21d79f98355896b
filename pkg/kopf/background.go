package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Daemon declares a function that runs for each object as long as the object exists: it is
// called when the object appears or the operator starts, and must return when the object is
// deleted or no longer matches, or when the operator stops. A finalizer keeps the object
// until its daemons have stopped.
//
// Specification: Daemons.
func (r *Registry) Daemon(sel Selector, fn DaemonFunc, options ...DaemonOption) {
	r.declared().Add(handler.Daemon(sel, handler.Function{Daemon: fn}, options...))
}

// Timer declares a function that is called for each object on a schedule, as long as the
// object exists and matches. Objects that only have timers have no finalizer.
//
// Specification: Timers.
func (r *Registry) Timer(sel Selector, fn TimerFunc, options ...TimerOption) {
	r.declared().Add(handler.Timer(sel, handler.Function{Timer: fn}, options...))
}

// Daemon declares a function that runs for each object as long as the object exists, in
// DefaultRegistry. See Registry.Daemon.
func Daemon(sel Selector, fn DaemonFunc, options ...DaemonOption) {
	DefaultRegistry.Daemon(sel, fn, options...)
}

// Timer declares a function that is called for each object on a schedule, in
// DefaultRegistry. See Registry.Timer.
func Timer(sel Selector, fn TimerFunc, options ...TimerOption) {
	DefaultRegistry.Timer(sel, fn, options...)
}

// TaskOf is a Task of a typed object.
type TaskOf[T client.Object] struct {
	*Task
	object T
}

// Bind sets the arguments, and decodes the object. See ChangeOf.Bind.
func (t *TaskOf[T]) Bind(to *Task) (err error) {
	t.Task = to
	t.object, err = decode[T](to.Body().Raw())
	return err
}

// Object returns the object as it was when this call of the daemon began. Changing it has
// no effect: use Update, or the Patch. While the object does not fit the type, the daemon does
// not run: it is not started, or is stopped with StopMisfit.
func (t *TaskOf[T]) Object() T { return t.object }

// Latest returns the object as it is now, decoded anew at every call. If the object does not
// fit the type, it returns a MisfitError. A daemon can return that error: it does not count
// as an attempt, and the daemon starts again when the object fits.
func (t *TaskOf[T]) Latest() (T, error) { return decode[T](t.Body().Raw()) }

// Update changes the object with a function after the daemon has returned. See
// ChangeOf.Update.
func (t *TaskOf[T]) Update(change func(T) error) { update(t.Patch(), change) }

// TickOf is a Tick of a typed object.
type TickOf[T client.Object] struct {
	*Tick
	object T
}

// Bind sets the arguments, and decodes the object. See ChangeOf.Bind.
func (t *TickOf[T]) Bind(to *Tick) (err error) {
	t.Tick = to
	t.object, err = decode[T](to.Body().Raw())
	return err
}

// Object returns the object as it was when this call of the timer began. Changing it has
// no effect: use Update, or the Patch. While the object does not fit the type, the timer is
// not called.
func (t *TickOf[T]) Object() T { return t.object }

// Latest returns the object as it is now, decoded anew at every call. If the object does not
// fit the type, it returns a MisfitError.
func (t *TickOf[T]) Latest() (T, error) { return decode[T](t.Body().Raw()) }

// Update changes the object with a function after the timer has returned. See
// ChangeOf.Update.
func (t *TickOf[T]) Update(change func(T) error) { update(t.Patch(), change) }

// Daemon is Registry.Daemon for the type.
func (t Typed[T]) Daemon(fn func(context.Context, *TaskOf[T]) error, options ...DaemonOption) {
	function := handler.Function{Object: newOf[T]()}
	if fn != nil {
		function.Origin = fn
		function.Daemon = func(ctx context.Context, task *Task) error {
			typed := &TaskOf[T]{}
			if err := typed.Bind(task); err != nil {
				return err
			}
			return fn(ctx, typed)
		}
	}
	t.registry.declared().Add(handler.Daemon(Selector{}, function, options...))
}

// Timer is Registry.Timer for the type.
func (t Typed[T]) Timer(fn func(context.Context, *TickOf[T]) error, options ...TimerOption) {
	function := handler.Function{Object: newOf[T]()}
	if fn != nil {
		function.Origin = fn
		function.Timer = func(ctx context.Context, tick *Tick) error {
			typed := &TickOf[T]{}
			if err := typed.Bind(tick); err != nil {
				return err
			}
			return fn(ctx, typed)
		}
	}
	t.registry.declared().Add(handler.Timer(Selector{}, function, options...))
}
