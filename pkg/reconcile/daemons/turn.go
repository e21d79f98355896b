package daemons

import (
	"context"
	"runtime"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// ring does what is due, unless that was put off or cancelled at the last
// moment. It is a goroutine of its own.
func (w *worker) onTimer() {
	w.group.supervisor.mu.Lock()
	if w.due.IsZero() || time.Now().Before(w.due) {
		w.group.supervisor.mu.Unlock()
		return
	}
	switch w.phase {
	case waiting:
		visit := w.beginRun()
		w.group.supervisor.mu.Unlock()
		// The runtime prefers what timers start: on one processor, a handler that
		// is retried without a delay would keep everybody else from running.
		runtime.Gosched()
		visit.start()
	case running:
		notice := w.escalate()
		w.group.supervisor.mu.Unlock()
		w.group.emit(notice)
	default:
		w.group.supervisor.mu.Unlock()
	}
}

// begin makes the worker run. The lock is held.
func (w *worker) beginRun() *run {
	s := w.group.supervisor
	w.setPhase(running)
	w.stage, w.stopRequested = signalled, false
	w.lastDue, w.due, w.seenChanges = w.due, time.Time{}, w.group.changeCount
	s.awaited++
	v := &run{worker: w, workerCtx: s.handlerCtx}
	if w.isDaemon() {
		v.workerCtx, w.cancel = context.WithCancelCause(s.handlerCtx)
		w.stopper = handler.NewStopper()
		v.stopper = w.stopper
	}
	return v
}

// finish decides what becomes of the worker after an attempt.
func (w *worker) endRun(o execution.Outcome) {
	if w.applyOutcome(o) {
		w.group.host.Requeue()
	}
}

// settle is finish under the lock. It tells whether a pass is needed.
func (w *worker) applyOutcome(o execution.Outcome) bool {
	s := w.group.supervisor
	s.mu.Lock()
	defer s.mu.Unlock()
	defer w.group.forgetIfStopped()
	if w.phase == running {
		s.decrementAwaited()
	}
	w.stopTimer()
	if w.isDaemon() {
		w.cancel(nil)
		w.stopper, w.cancel = nil, nil
	}
	if w.stopRequested {
		w.setPhase(off)
		return w.isDaemon() || !w.group.closed
	}
	w.scheduleNext(o)
	return w.isDaemon() && w.phase == ended
}
