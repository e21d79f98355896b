package daemons

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// stage is how far the termination of a daemon is.
type stage uint8

const (
	signalled stage = iota // it was asked to stop
	cancelled              // its context was cancelled
	polling                // it is waited for without end
)

// notice is what is to be told when the lock is not held any more.
// The zero value is nothing.
type warning struct {
	handler         *handler.Declaration
	reason, message string
	requeue         bool
}

func (g *Group) emit(n warning) {
	if n.handler != nil {
		g.host.Warn(n.handler, n.reason, n.message)
	}
	if n.requeue {
		g.host.Requeue()
	}
}

// halt stops the worker: at once if it does not run, by its stages if it is a
// running daemon, and after its call if it is a timer. The lock is held.
func (w *worker) requestStop(reason handler.StopReason) {
	w.setStopReason(reason | handler.StopSignalled)
	switch {
	case w.phase == waiting:
		w.stopTimer()
		w.setPhase(off)
	case w.phase != running || w.stopRequested:
		return
	case w.isDaemon():
		w.stopRequested = true
		w.beginTermination()
	default:
		w.stopRequested = true
	}
}

// mark tells a daemon why it is to stop, and thereby that it is.
func (w *worker) setStopReason(reason handler.StopReason) {
	if w.stopper != nil {
		w.stopper.Stop(reason)
	}
}

// terminate begins with the stages. The lock is held.
//
// Specification: Daemons, "Timeouts".
func (w *worker) beginTermination() {
	if backoff := w.handler.CancellationBackoff; backoff > 0 {
		w.startTimer(time.Now().Add(backoff))
		return
	}
	w.escalate()
}

// escalate takes the next stage of the termination. The lock is held.
func (w *worker) escalate() warning {
	timeout := w.handler.CancellationTimeout
	switch {
	case timeout != nil && w.stage == signalled:
		w.stage = cancelled
		w.setStopReason(handler.StopCancelled)
		w.cancel(errStopped)
		w.startTimer(time.Now().Add(*timeout))
	case timeout != nil:
		return w.abandon()
	case w.stage == signalled:
		w.stage = polling
		w.startTimer(time.Now().Add(w.pollInterval()))
	default:
		w.startTimer(time.Now().Add(w.pollInterval()))
		return warning{handler: w.handler, reason: ReasonStopping, message: fmt.Sprintf(
			"The daemon %s was asked to stop, and is still running. The object is kept until it returns.", w.handler.ID)}
	}
	return warning{}
}

func (w *worker) pollInterval() time.Duration {
	if w.handler.CancellationPolling > 0 {
		return w.handler.CancellationPolling
	}
	return w.group.supervisor.options.CancellationPolling
}

// abandon stops to wait for the worker. The lock is held.
func (w *worker) abandon() warning {
	w.stopTimer()
	w.setPhase(abandoned)
	w.setStopReason(handler.StopAbandoned)
	w.group.supervisor.decrementAwaited()
	return warning{handler: w.handler, reason: ReasonAbandoned, requeue: w.isDaemon(), message: fmt.Sprintf(
		"The %s %s has not returned in time, and is left to itself. It may still do something, and keeps its memory.", w.handler.Kind, w.handler.ID)}
}
