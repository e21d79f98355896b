package daemons

import (
	"context"
	"runtime"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// phase is the current activity of a worker.
type phase uint8

const (
	off       phase = iota // it may start when its handler matches
	waiting                // for its next call, or for the next change of the object
	running                // its goroutine exists, and is waited for
	abandoned              // its goroutine exists, and is not waited for
	ended                  // for good
)

// worker is one handler of one object. Every such pair has one, so every field must be
// worth its bytes. The supervisor's lock guards it, except for attempts and plannedFor, which belong
// to the goroutine while there is one.
type worker struct {
	group *Group
	// handler changes only while the worker is off.
	handler  *handler.Declaration
	attempts call.Attempts

	// timer fires when the worker is due: to be called, or to proceed to the next
	// stage of its termination. It is nil before its first use.
	timer *time.Timer
	due   time.Time // zero if nothing is due

	notBefore   time.Time  // the end of the initial delay
	plannedFor  time.Time  // for when the last call was planned; for a schedule, the run, or zero if it is unknown
	seenChanges uint32     // changeCount of the group at the last call
	scheduled   *scheduled // of a timer with a schedule

	phase         phase
	stage         stage
	slot          slot
	stopRequested bool // since the last call began
	writing       bool // the last call has returned, and its edit is being written

	// Set while the goroutine exists.
	stopper *handler.Stopper
	cancel  context.CancelCauseFunc
}

// isFor reports whether the worker runs the handler. Several declarations of one
// function with one id are one handler.
func (w *worker) isFor(d *handler.Declaration) bool { return w.handler.ID == d.ID }

// isDaemon reports whether the handler is a daemon; otherwise it is a timer.
func (w *worker) isDaemon() bool { return w.handler.Kind == handler.OnDaemon }

// isActive reports whether there is anything to stop.
func (w *worker) isActive() bool {
	return w.phase == waiting || w.phase == running || w.phase == abandoned
}

// setPhase changes the phase of the worker, and the counts. A worker that does not run has no
// slot. The lock is held.
func (w *worker) setPhase(next phase) {
	if next != running && next != abandoned {
		w.returnSlot()
	}
	t := w.group.supervisor.countsOf(w.handler.Kind)
	t[w.phase]--
	t[next]++
	w.phase = next
}

// ensureStarted starts the worker if it is off. A worker that runs for another
// declaration of the handler, with other parameters, must stop first. The lock is
// held.
func (w *worker) ensureStarted(d *handler.Declaration) {
	if w.handler != d {
		w.requestStop(stop.Mismatch)
	}
	if w.phase == off {
		w.handler = d
		if d.Schedule != nil && w.scheduled == nil { // it has stopped since the group has looked
			w.scheduled = &scheduled{}
			w.forgetPlan()
		}
		w.attempts = call.Attempts{}
		w.setPhase(waiting)
		w.startTimer(latest(latest(time.Now(), w.notBefore), w.idleFrom()))
	}
}

// refusalPause is when a call is due again that must not begin. Mostly, the worker is stopped before.
const refusalPause = time.Second

// onTimer does what is due, unless that was postponed or canceled at the last moment.
// It runs in its own goroutine.
func (w *worker) onTimer() {
	w.group.supervisor.mu.Lock()
	if w.due.IsZero() || time.Now().Before(w.due) {
		w.group.supervisor.mu.Unlock()
		return
	}
	switch w.phase {
	case waiting:
		if !w.group.host.CanCall() {
			w.startTimer(time.Now().Add(refusalPause))
			w.group.supervisor.mu.Unlock()
			return
		}
		if !w.takeSlot() {
			w.group.supervisor.mu.Unlock()
			return
		}
		run := w.beginRun()
		w.group.supervisor.mu.Unlock()
		// The runtime prefers goroutines that timers start: on one processor, a
		// handler that is retried without a delay would starve all others.
		runtime.Gosched()
		run.start()
	case running:
		warning := w.escalate()
		w.group.supervisor.mu.Unlock()
		w.group.emit(warning)
	default:
		w.group.supervisor.mu.Unlock()
	}
}

// beginRun puts the worker into the phase running. The lock is held.
func (w *worker) beginRun() *run {
	s := w.group.supervisor
	w.setPhase(running)
	w.stage = signaled
	w.stopRequested = false
	w.writing = false
	if w.handler.Schedule == nil {
		w.plannedFor = w.due
	}
	w.due = time.Time{}
	w.seenChanges = w.group.changeCount
	s.awaited++
	r := &run{worker: w, stopper: handler.NewStopper()}
	r.workerCtx, w.cancel = context.WithCancelCause(s.handlerCtx)
	w.stopper = r.stopper
	return r
}

// endRun decides what the worker does after an attempt.
func (w *worker) endRun(o call.Outcome, n *next) {
	if w.applyOutcome(o, n) {
		w.group.currentHost().Requeue()
	}
}

// applyOutcome is endRun under the lock. It reports whether a pass is needed.
func (w *worker) applyOutcome(o call.Outcome, n *next) bool {
	s := w.group.supervisor
	s.mu.Lock()
	defer s.mu.Unlock()
	defer w.group.forgetIfStopped()
	if w.phase == running {
		s.decrementAwaited()
	}
	w.stopTimer()
	w.cancel(nil)
	w.stopper = nil
	w.cancel = nil
	if w.stopRequested {
		w.setPhase(off)
		w.forgetPlan()
		return w.isDaemon() || !w.group.closed
	}
	at, again := w.nextCall(o, n, time.Now())
	if !again {
		w.setPhase(ended)
		return w.isDaemon()
	}
	w.setPhase(waiting)
	if o.Final && w.scheduled != nil && w.scheduled.mustLook {
		at = w.plan(next{look: time.Now()})
	}
	if !at.IsZero() {
		w.startTimer(at)
	}
	return false
}
