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
func (w *worker) ring() {
	w.group.supervisor.mu.Lock()
	if w.due.IsZero() || time.Now().Before(w.due) {
		w.group.supervisor.mu.Unlock()
		return
	}
	switch w.phase {
	case waiting:
		visit := w.begin()
		w.group.supervisor.mu.Unlock()
		// The runtime prefers what timers start: on one processor, a handler that
		// is retried without a delay would keep everybody else from running.
		runtime.Gosched()
		visit.run()
	case running:
		notice := w.escalate()
		w.group.supervisor.mu.Unlock()
		w.group.tell(notice)
	default:
		w.group.supervisor.mu.Unlock()
	}
}

// begin makes the worker run. The lock is held.
func (w *worker) begin() *visit {
	s := w.group.supervisor
	w.enter(running)
	w.stage, w.told = signalled, false
	w.began, w.due, w.seen = w.due, time.Time{}, w.group.changes
	s.awaited++
	v := &visit{worker: w, working: s.working}
	if w.daemon() {
		v.working, w.cancel = context.WithCancelCause(s.working)
		w.stop = handler.NewStopper()
		v.stop = w.stop
	}
	return v
}

// finish decides what becomes of the worker after an attempt.
func (w *worker) finish(o execution.Outcome) {
	if w.settle(o) {
		w.group.host.Requeue()
	}
}

// settle is finish under the lock. It tells whether a pass is needed.
func (w *worker) settle(o execution.Outcome) bool {
	s := w.group.supervisor
	s.mu.Lock()
	defer s.mu.Unlock()
	defer w.group.leave()
	if w.phase == running {
		s.release()
	}
	w.disarm()
	if w.daemon() {
		w.cancel(nil)
		w.stop, w.cancel = nil, nil
	}
	if w.told {
		w.enter(off)
		return w.daemon() || !w.group.closed
	}
	w.schedule(o)
	return w.daemon() && w.phase == ended
}
