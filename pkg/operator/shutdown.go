package operator

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// reserve is the time for final writes and events after the grace period of the handlers.
const reserve = 5 * time.Second

// errNotStopped means that code of users has not returned.
var errNotStopped = errors.New("the operator did not stop in time: its running parts are abandoned")

// shutDown waits until the replica has stopped, after its manager has returned the error. A
// manager that has lost its lease does not wait for that; a manager that was stopped has
// waited for the ShutdownTimeout.
func (r *replica) shutDown(ctx context.Context, err error) error {
	patience := r.settings.Execution.ShutdownTimeout
	if ctx.Err() != nil {
		patience = reserve
	}
	done := make(chan error, 1)
	go func() { done <- r.waitStopped(ctx, err) }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.Join(err, errNotStopped)
	}
}

// waitStopped waits until the leader and the servers of the replica have stopped. A manager
// returns an error if it cannot continue: another replica may handle the objects by now, so
// that the engine aborts, unless abortIfLost has done that: handlers get no grace period, and
// their edits are not written.
func (r *replica) waitStopped(ctx context.Context, err error) error {
	if err != nil {
		r.engine.Abort(err)
	}
	leaderErr := r.leadership.end()
	r.running.Wait()
	r.activities.cleanUp(ctx)
	if err == nil {
		err = leaderErr // a stopped manager does not return it
	}
	if r.activities.abandoned {
		err = errors.Join(err, errNotStopped)
	}
	return err
}

// cleanUp calls the cleanup handlers once if the startup handlers have succeeded, and waits
// for them, unless they ignore their context.
func (a *activityHandlers) cleanUp(ctx context.Context) {
	a.cleanedUp.Do(func() {
		if !a.started {
			return
		}
		timeout := a.operator.settings.WithDefaults().Execution.ShutdownTimeout
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		failed := make(chan error, 1)
		go func() { failed <- a.runner().Each(ctx, a.operator.activities.OfKind(handler.OnCleanup)) }()
		select {
		case err := <-failed:
			if err != nil {
				a.operator.options.Logger.Error(err, "Some cleanup handlers failed.")
			}
		case <-late(ctx):
			a.abandoned = true
			a.operator.options.Logger.Error(nil, "A cleanup handler has not returned although it was canceled; it is abandoned.")
		}
	})
}

// late returns a channel that is closed some time after the context is done.
func late(ctx context.Context) <-chan struct{} {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() { time.AfterFunc(cancelPatience, func() { close(over) }) })
	return over
}

// cancelPatience is the time for handlers to return after they are canceled.
const cancelPatience = time.Second
