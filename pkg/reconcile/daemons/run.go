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
type visit struct {
	*worker
	working context.Context // of the worker
	ctx     context.Context // of the handler
	trial   execution.Attempt
	patch   *patch.Patch
	stop    *handler.Stopper

	// One of them, as the kind of the handler is.
	task *handler.Task
	tick *handler.Tick
}

// run makes one attempt, reports it, has written what the handler wants, and
// decides what becomes of the worker.
func (v *visit) run() {
	err := v.prepare()
	switch {
	case err != nil:
		v.finish(v.broken(err))
	case v.stop == nil:
		v.complete()
	default:
		// The stack of this goroutine has grown over the preparations. A daemon
		// gets a small one for its life.
		go v.complete()
	}
}

func (v *visit) complete() { v.end(v.call()) }

func (v *visit) end(failure error) {
	var outcome execution.Outcome
	if err := handler.WithRecover(func() error { outcome = v.conclude(failure); return nil }); err != nil {
		outcome = v.broken(err)
	}
	v.finish(outcome)
}

// broken makes an error of the handler of a panic outside of it, such as one of
// the engine: it must not take the operator down.
func (v *visit) broken(err error) execution.Outcome {
	outcome := failed(err, v.group.supervisor.backoff(v.handler))
	v.group.host.Report(v.working, v.handler, outcome)
	return outcome
}

// prepare makes the context and the arguments.
func (v *visit) prepare() error {
	return handler.WithRecover(func() error {
		ctx, subject := v.group.host.Prepare(v.working, v.handler)
		v.patch = &patch.Patch{}
		subject.Patch = v.patch
		v.ctx, v.trial = v.series.Begin(ctx, v.handler, v.group.supervisor.options.Backoff)
		if v.stop == nil {
			v.tick = handler.NewTick(subject, v.handler.Param, v.trial.Args)
		} else {
			v.task = handler.NewTask(subject, v.handler.Param, v.trial.Args, v.stop)
		}
		return nil
	})
}

// call calls the handler, unless one of its limits is over.
func (v *visit) call() error {
	switch {
	case !v.trial.Allowed():
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
func (v *visit) conclude(failure error) execution.Outcome {
	var result any
	if failure == nil {
		result, failure = execution.NormalizeResult(v.result())
	}
	outcome := v.series.End(v.ctx, &v.trial, result, failure)
	reported := v.correct(&outcome)
	v.measure(outcome, reported)
	if reported {
		v.group.host.Report(v.ctx, v.handler, outcome)
	}
	accepted := v.deliver(outcome.Result)
	if v.stop != nil && outcome.Succeeded() && outcome.Ignored == nil && accepted && !v.asked() {
		v.group.host.Report(v.ctx, v.handler, outcome)
	}
	return outcome
}

func (v *visit) result() any {
	if v.tick != nil {
		return v.tick.Result()
	}
	return v.task.Result()
}

func (v *visit) asked() bool { return v.stop != nil && v.stop.Reason() != 0 }

// correct tells whether the outcome is an error to be reported, and puts it
// right for that: a handler that was cancelled has not failed, and a daemon that
// was asked to stop will not be retried.
func (v *visit) correct(o *execution.Outcome) bool {
	switch {
	case o.Err == nil:
		return o.Ignored != nil
	case v.working.Err() != nil && (errors.Is(o.Err, context.Canceled) || errors.Is(o.Err, errStopped)):
		return false
	case v.asked():
		o.Final, o.Delay = true, 0
	}
	return true
}

// measure has the outcome counted. A handler that was cancelled has done what it was
// told to do.
func (v *visit) measure(o execution.Outcome, reported bool) {
	if o.Err != nil && !reported {
		o.Err, o.Final = nil, true
	}
	v.group.host.Measure(v.handler, o)
}

// deliver has written what the handler wants, and tells whether that was
// accepted. What is refused is lost, and changes nothing in the life of the
// handler.
func (v *visit) deliver(result any) bool {
	if result == nil && v.patch.Empty() {
		return true
	}
	ctx := v.group.supervisor.delivering
	err := v.group.host.WriteEdit(ctx, execution.Edit{ID: v.handler.ID, Result: result, Patch: v.patch})
	if err != nil && ctx.Err() == nil {
		v.group.host.Warn(v.handler, ReasonWriteRejected, fmt.Sprintf("What the handler %s wants to be written to the object was refused: %s", v.handler.ID, err))
	}
	return err == nil
}

func (s *Supervisor) backoff(d *handler.Declaration) time.Duration {
	if d.Backoff != nil {
		return *d.Backoff
	}
	return s.options.Backoff
}

func failed(err error, delay time.Duration) execution.Outcome {
	return execution.Outcome{Called: true, Err: err, Delay: delay}
}
