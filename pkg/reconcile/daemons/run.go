package daemons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// run is one attempt of a worker's handler. It holds what is needed while the handler
// runs: a daemon spends its life in it, and each daemon has its own stack, which must
// stay shallow.
type run struct {
	worker    *worker
	workerCtx context.Context // canceled when the worker must stop
	ctx       context.Context // the handler's
	attempt   call.Attempt
	stopper   *handler.Stopper
	call      *handler.Call
	next      *next           // of a timer that decides that after the call
	ended     *storage.Record // of the run of a schedule that has ended; nil otherwise
	span      call.EndSpan
	attention *attention
}

var _ handler.Background = (*run)(nil)

// start prepares the context and the arguments, and makes the attempt.
func (r *run) start() {
	err := handler.WithRecover(func() error {
		ctx, call := r.worker.group.currentHost().Prepare(r.workerCtx, r.worker.handler)
		call.Patch = &patch.Patch{}
		r.ctx, r.attempt = r.worker.attempts.Begin(ctx, r.worker.handler, r.worker.group.supervisor.options.Backoff)
		r.call = handler.NewCall(r.worker.handler, call, r.attempt.Args)
		r.call.Background = r
		if planned := r.worker.plannedFor; r.worker.handler.Schedule != nil && !planned.IsZero() {
			r.call.Run = &planned
		}
		if !r.worker.isDaemon() && !r.isUnplanned() {
			r.ctx, r.span = r.worker.group.currentHost().Trace(r.ctx, r.worker.handler, r.attempt.Args)
		}
		return nil
	})
	switch {
	case err != nil:
		r.worker.endRun(r.reportPanic(err), r.lookAgain())
	case r.worker.isDaemon():
		r.beginAttention()
		// The preparations have grown the stack of this goroutine. A daemon gets a
		// goroutine with a small stack for its life.
		go r.callHandler()
	default:
		r.callHandler()
	}
}

// callHandler makes the attempt. Thousands of daemons wait in it. A handler that ends the goroutine has
// failed.
func (r *run) callHandler() {
	failure := handler.ErrExited
	defer func() { r.finish(failure) }()
	switch {
	case r.isUnplanned():
		failure = nil // the time of the run is looked for
	case !r.attempt.Allowed():
		failure = nil // the attempt knows which limit is exceeded
	case !r.worker.group.currentHost().CanCall():
		failure = errRefused
		return
	default:
		_, failure = r.worker.handler.Call(r.ctx, r.call)
	}
	if r.worker.handler.DecidesNext() {
		failure = r.decideNext(failure)
	}
}

// errRefused ends an attempt that must not begin anymore: the goroutine has waited for a processor since it was found that it
// could. It does not count.
var errRefused = errors.New("another process may handle the object")

// isUnplanned reports whether the time of the next run is unknown, and must be looked for: there is no call.
func (r *run) isUnplanned() bool { return r.worker.handler.Schedule != nil && r.call.Run == nil }

// decideNext decides when the timer is called next, from the object as it is now. It runs code of users. An interval that
// cannot be computed fails the call. A schedule that cannot be read is an error of the object, and none of the run that
// has just been made.
//
//go:noinline
func (r *run) decideNext(failure error) error {
	d := r.worker.handler
	if d.Schedule != nil {
		n := r.worker.lookAfter(r.call.Run)
		r.next = &n
		return failure
	}
	interval, err := d.IntervalAfter(r.call)
	switch {
	case err == nil:
		r.next = &next{interval: interval}
	case failure == nil:
		return err
	}
	return failure
}

// lookAgain returns when to look for the time of the next call again, after an error.
func (r *run) lookAgain() *next {
	return &next{look: time.Now().Add(r.worker.group.supervisor.delayAfter(r.worker.handler, 0))}
}

// finish processes what the call returned, and hands the outcome to the worker.
func (r *run) finish(failure error) {
	outcome := call.Outcome{Final: true}
	if r.isUnplanned() {
		r.worker.attempts.Cancel(&r.attempt)
	} else if err := handler.WithRecover(func() error { outcome = r.processResult(failure); return nil }); err != nil {
		outcome = r.reportPanic(err)
	}
	if r.next == nil && r.worker.handler.DecidesNext() { // the code of users has failed, or has ended the goroutine
		r.next = r.lookAgain()
	}
	r.endAttention()
	r.worker.endRun(outcome, r.next)
}

// reportPanic turns a panic outside of the handler, such as one of the engine, into a
// failure of the handler. It must not take the operator down.
func (r *run) reportPanic(err error) call.Outcome {
	outcome := failedOutcome(err, r.worker.group.supervisor.delayAfter(r.worker.handler, r.attempt.Args.Retry))
	r.endSpan(outcome, true)
	r.worker.group.currentHost().Report(r.workerCtx, r.worker.handler, outcome)
	return outcome
}

// endSpan ends the span of the attempt. That of a daemon, which can last as long as its object, is made at its end and
// is not in its context: what a daemon does is too much for one trace.
func (r *run) endSpan(o call.Outcome, counts bool) {
	if r.worker.isDaemon() && o.Called && r.call != nil {
		_, r.span = r.worker.group.currentHost().Trace(r.workerCtx, r.worker.handler, r.attempt.Args)
	}
	r.span.End(o, counts)
	r.span = nil
}

// processResult counts the outcome of the call, writes the handler's edit, and reports
// the outcome. Failures are reported before the edit is written, which can take long;
// the success of a daemon is reported after that.
func (r *run) processResult(failure error) call.Outcome {
	if errors.Is(failure, errRefused) {
		return r.discount(call.Outcome{Err: failure, Delay: refusalPause})
	}
	var result any
	if failure == nil {
		result, failure = call.NormalizeResult(r.call.Result())
	}
	// A call does not count as an attempt if the object does not fit the Go type of the handler. The pass
	// over that version of the object stops the worker and reports why; should the object have changed
	// again by then, the handler is called after the delay.
	if handler.AsMisfit(failure) != nil {
		return r.discount(failedOutcome(failure, r.worker.group.supervisor.delayAfter(r.worker.handler, 0)))
	}
	outcome := r.worker.attempts.End(r.ctx, &r.attempt, result, failure)
	if outcome.Final && r.call.Run != nil {
		if err := r.putRun(outcome); err != nil {
			return r.reportPanic(err)
		}
	}
	reported := r.adjust(&outcome)
	measured := outcome
	if outcome.Err != nil && !reported { // a handler that was canceled did what it was told to do
		measured.Err = nil
		measured.Final = true
	}
	r.worker.group.currentHost().Measure(r.worker.handler, measured)
	r.endSpan(measured, true)
	if reported {
		r.worker.group.currentHost().Report(r.ctx, r.worker.handler, outcome)
	}
	if outcome.Succeeded() && outcome.Ignored == nil && r.call.Run != nil {
		r.worker.group.currentHost().ReportRun(r.worker.handler, *r.call.Run)
	}
	accepted := r.writeEdit(outcome.Result)
	if r.worker.isDaemon() && outcome.Succeeded() && outcome.Ignored == nil && accepted && !r.hasStopReason() {
		r.worker.group.currentHost().Report(r.ctx, r.worker.handler, outcome)
	}
	return outcome
}

// discount ends an attempt that does not count.
func (r *run) discount(o call.Outcome) call.Outcome {
	r.worker.attempts.Cancel(&r.attempt)
	r.endSpan(o, false)
	return o
}

// putRun adds the end of a run to what the timer writes. The schedule is stored, too: the runs of another one do not
// follow this run.
func (r *run) putRun(o call.Outcome) error {
	ended := storage.Record{Started: *r.call.Run, Stopped: time.Now().UTC(), Retries: r.attempt.Args.Retry, Success: o.Err == nil, Failure: o.Err != nil, Schedule: r.worker.markRun(*r.call.Run)}
	if o.Called {
		ended.Retries++
	}
	if o.Err != nil {
		ended.Message = o.Err.Error()
	}
	r.ended = &ended
	return r.worker.group.currentHost().PutRun(r.ctx, r.worker.handler, ended, r.call.Context.Patch)
}

// hasStopReason reports whether the handler was asked to stop.
func (r *run) hasStopReason() bool { return r.stopper.Reason() != 0 }

// adjust reports whether the outcome is an error to be reported, and corrects it: a
// handler that was canceled has not failed, and one that was asked to stop is not
// retried.
func (r *run) adjust(o *call.Outcome) bool {
	switch {
	case o.Err == nil:
		return o.Ignored != nil
	case r.hasStopReason() && errors.Is(o.Err, handler.ErrGone): // it is told so in more than one way
		return false
	case r.workerCtx.Err() != nil && (errors.Is(o.Err, context.Canceled) || errors.Is(o.Err, errStopped)):
		return false
	case r.hasStopReason():
		o.Final = true
		o.Delay = 0
	}
	return true
}

// writeEdit writes what the handler wants to write, and reports whether that was
// accepted. A rejected edit is lost, and does not affect the schedule of the handler. The end of a run is
// stored without it.
func (r *run) writeEdit(result any) bool {
	if result == nil && r.call.Context.Patch.Empty() && !r.hasUnwritten() {
		return true
	}
	s := r.worker.group.supervisor
	s.mu.Lock()
	r.worker.writing = true
	s.mu.Unlock()
	ctx := s.writeCtx
	if r.ended != nil {
		return r.writeRun(ctx, result)
	}
	err := r.worker.group.currentHost().WriteEdit(ctx, call.Edit{ID: r.worker.handler.ID, Result: result, Patch: r.call.Context.Patch})
	if err != nil && ctx.Err() == nil {
		r.worker.group.currentHost().Warn(r.worker.handler, ReasonWriteRejected, fmt.Sprintf("The edit of the handler %s was rejected: %s", r.worker.handler.ID, err))
	}
	return err == nil
}

// writeRun writes the end of a run, together with what the handler wants to write. If that is rejected, it writes the end
// alone, until it is accepted: otherwise, another process would make the run again. It reports whether
// everything was accepted.
func (r *run) writeRun(ctx context.Context, result any) (accepted bool) {
	edit := call.Edit{ID: r.worker.handler.ID, Result: result, Patch: r.call.Context.Patch}
	for retry := 0; ; retry++ {
		isRejected := false
		edit.Failed = func(error) { isRejected = true }
		err := r.worker.group.currentHost().WriteEdit(ctx, edit)
		if err != nil || !isRejected {
			return err == nil && retry == 0
		}
		if retry > 0 { // the end was alone
			delay := time.NewTimer(r.worker.group.supervisor.delayAfter(r.worker.handler, retry-1))
			select {
			case <-delay.C:
			case <-r.stopper.Done():
			case <-ctx.Done():
			}
			delay.Stop()
			if r.hasStopReason() || ctx.Err() != nil {
				return false
			}
		}
		edit = call.Edit{ID: r.worker.handler.ID, Patch: &patch.Patch{}}
		if err := r.worker.group.currentHost().PutRun(ctx, r.worker.handler, *r.ended, edit.Patch); err != nil {
			r.reportPanic(err)
			return false
		}
	}
}

// failedOutcome returns the outcome of an attempt that failed and is retried after the
// delay.
func failedOutcome(err error, delay time.Duration) call.Outcome {
	return call.Outcome{Called: true, Err: err, Delay: delay}
}
