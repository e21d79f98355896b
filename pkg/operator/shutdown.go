package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// reserve is what is left for final writes and events after the grace period of
// the handlers.
const reserve = 5 * time.Second

// work handles the objects. Handlers that do not return when they are cancelled are
// left behind: nobody can stop them, and the others shall not wait for ever.
func (o *operator) work(ctx context.Context) error {
	grace := o.settings.WithDefaults().Execution.GracePeriod
	done := make(chan error, 1)
	go func() { done <- o.engine.Work(ctx) }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(grace+reserve, func() { close(late) })
	})()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("some handlers have not returned after the grace period of %s, although they were cancelled: they are left behind", grace)
	}
}

// cleanUp calls the cleanup handlers, if the operator has started. It does so once,
// and waits until it is done.
func (o *operator) cleanUp(ctx context.Context) {
	o.cleaned.Do(func() {
		if !o.started {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.settings.WithDefaults().Execution.ShutdownTimeout)
		defer cancel()
		if err := o.runner().Each(ctx, o.activities.Of(handler.OnCleanup)); err != nil {
			o.options.Logger.Error(err, "The cleanup is not complete.")
		}
	})
}

// end makes sure that nothing of the operator goes on when its manager does not.
// A manager that has lost its lease waits for nobody; one that was stopped has
// waited for the ShutdownTimeout.
func (o *operator) end(ctx context.Context, err error) error {
	patience := o.settings.WithDefaults().Execution.ShutdownTimeout
	if ctx.Err() != nil {
		patience = reserve
	}
	done := make(chan error, 1)
	go func() { done <- o.rest(ctx, err) }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.Join(err, errors.New("the operator has not stopped in time: what still runs is left behind"))
	}
}

// rest waits until nothing goes on.
func (o *operator) rest(ctx context.Context, err error) error {
	select {
	case <-o.begun:
		if err != nil {
			o.engine.Abort(err)
		}
	default:
	}
	late := o.tenure.end()
	o.standing.Wait()
	o.cleanUp(ctx)
	if err == nil {
		err = late // a manager that is stopped does not tell
	}
	return err
}
