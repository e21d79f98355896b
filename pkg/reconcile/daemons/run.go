package daemons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// visit is one attempt of a worker's handler. It keeps what is needed while the
// handler runs: daemons spend their lives in there, each of them with a stack of
// its own, which must not be deep.
type run struct {
	*worker
	workerCtx context.Context // of the worker
	ctx       context.Context // of the handler
	attempt   execution.Attempt
	patch     *patch.Patch
	stopper   *handler.Stopper

	// One of them, as the kind of the handler is.
	task *handler.Task
	tick *handler.Tick
}

// run makes one attempt, reports it, has written what the handler wants, and
// decides what becomes of the worker.
func (v *run) start() {
	err := v.prepare()
	switch {
	case err != nil:
		v.endRun(v.reportPanic(err))
	case v.stopper == nil:
		v.execute()
	default:
		// The stack of this goroutine has grown over the preparations. A daemon
		// gets a small one for its life.
		go v.execute()
	}
}

func (v *run) execute() { v.finish(v.call()) }

func (v *run) finish(failure error) {
	var outcome execution.Outcome
	if err := handler.WithRecover(func() error { outcome = v.processResult(failure); return nil }); err != nil {
		outcome = v.reportPanic(err)
	}
	v.endRun(outcome)
}

// broken makes an error of the handler of a panic outside of it, such as one of
// the engine: it must not take the operator down.
func (v *run) reportPanic(err error) execution.Outcome {
	outcome := failedOutcome(err, v.group.supervisor.backoffOf(v.handler))
	v.group.host.Report(v.workerCtx, v.handler, outcome)
	return outcome
}

// prepare makes the context and the arguments.
func (v *run) prepare() error {
	return handler.WithRecover(func() error {
		ctx, subject := v.group.host.Prepare(v.workerCtx, v.handler)
		v.patch = &patch.Patch{}
		subject.Patch = v.patch
		v.ctx, v.attempt = v.attempts.Begin(ctx, v.handler, v.group.supervisor.options.Backoff)
		if v.stopper == nil {
			v.tick = handler.NewTick(subject, v.handler.Param, v.attempt.Args)
		} else {
			v.task = handler.NewTask(subject, v.handler.Param, v.attempt.Args, v.stopper)
		}
		return nil
	})
}

// call calls the handler, unless one of its limits is over.
func (v *run) call() error {
	switch {
	case !v.attempt.Allowed():
		return nil
	case v.tick != nil:
		return v.handler.CallTimer(v.ctx, v.tick)
	default:
		return v.handler.CallDaemon(v.ctx, v.task)
	}
}

// conclude counts what has come of the call, and has written what is to be
// written. Failures are reported before that, which can take long, and a success
// after it.
func (v *run) processResult(failure error) execution.Outcome {
	var result any
	if failure == nil {
		result, failure = execution.NormalizeResult(v.result())
	}
	outcome := v.attempts.End(v.ctx, &v.attempt, result, failure)
	reported := v.adjust(&outcome)
	v.count(outcome, reported)
	if reported {
		v.group.host.Report(v.ctx, v.handler, outcome)
	}
	accepted := v.writeEdit(outcome.Result)
	if v.stopper != nil && outcome.Succeeded() && outcome.Ignored == nil && accepted && !v.hasStopReason() {
		v.group.host.Report(v.ctx, v.handler, outcome)
	}
	return outcome
}

func (v *run) result() any {
	if v.tick != nil {
		return v.tick.Result()
	}
	return v.task.Result()
}

func (v *run) hasStopReason() bool { return v.stopper != nil && v.stopper.Reason() != 0 }

// correct tells whether the outcome is an error to be reported, and puts it
// right for that: a handler that was cancelled has not failed, and a daemon that
// was asked to stop will not be retried.
func (v *run) adjust(o *execution.Outcome) bool {
	switch {
	case o.Err == nil:
		return o.Ignored != nil
	case v.workerCtx.Err() != nil && (errors.Is(o.Err, context.Canceled) || errors.Is(o.Err, errStopped)):
		return false
	case v.hasStopReason():
		o.Final, o.Delay = true, 0
	}
	return true
}

// measure has the outcome counted. A handler that was cancelled has done what it was
// told to do.
func (v *run) count(o execution.Outcome, reported bool) {
	if o.Err != nil && !reported {
		o.Err, o.Final = nil, true
	}
	v.group.host.Measure(v.handler, o)
}

// deliver has written what the handler wants, and tells whether that was
// accepted. What is refused is lost, and changes nothing in the life of the
// handler.
func (v *run) writeEdit(result any) bool {
	if result == nil && v.patch.Empty() {
		return true
	}
	ctx := v.group.supervisor.writeCtx
	err := v.group.host.WriteEdit(ctx, execution.Edit{ID: v.handler.ID, Result: result, Patch: v.patch})
	if err != nil && ctx.Err() == nil {
		v.group.host.Warn(v.handler, ReasonWriteRejected, fmt.Sprintf("What the handler %s wants to be written to the object was refused: %s", v.handler.ID, err))
	}
	return err == nil
}

func (s *Supervisor) backoffOf(d *handler.Declaration) time.Duration {
	if d.Backoff != nil {
		return *d.Backoff
	}
	return s.options.Backoff
}

func failedOutcome(err error, delay time.Duration) execution.Outcome {
	return execution.Outcome{Called: true, Err: err, Delay: delay}
}
