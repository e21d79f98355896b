package daemons

import (
	"fmt"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// stage is the progress of the termination of a daemon.
type stage uint8

const (
	signaled stage = iota // the daemon was asked to stop
	canceled              // its context was canceled
	polling               // it is waited for without a limit
)

// warning is a warning to report after the lock is released. The zero value
// reports nothing.
type warning struct {
	handler         *handler.Declaration
	reason, message string
	requeue         bool
}

// emit reports a warning. The lock is not held.
func (g *Group) emit(w warning) {
	if w.handler != nil {
		g.currentHost().Warn(w.handler, w.reason, w.message)
	}
	if w.requeue {
		g.currentHost().Requeue()
	}
}

// requestStop stops the worker: at once if it does not run, by its stages if it is a
// running daemon, and after its call if it is a timer. The lock is held.
//
// Specification: Daemons, "Timeouts".
func (w *worker) requestStop(reason stop.Reason) {
	w.setStopReason(reason | stop.Signaled)
	switch {
	case w.phase == waiting:
		w.stopTimer()
		w.setPhase(off)
	case w.phase != running:
		return
	case !w.isDaemon():
		w.stopRequested = true
		// A call that has lost its object is canceled. A pause or an exit of the operator lets it continue.
		if reason&(stop.Deleted|stop.Mismatch|stop.Misfit) != 0 {
			w.setStopReason(stop.Canceled)
			w.cancel(errStopped)
		}
	case !w.stopRequested:
		w.stopRequested = true
		if backoff := w.handler.CancellationBackoff; backoff > 0 {
			w.startTimer(time.Now().Add(backoff))
		} else {
			w.escalate()
		}
	}
}

// setStopReason asks a running handler to stop, and adds the reason.
func (w *worker) setStopReason(reason stop.Reason) {
	if w.stopper != nil {
		w.stopper.Stop(reason)
	}
}

// escalate proceeds to the next stage of the termination. The lock is held.
func (w *worker) escalate() warning {
	timeout := w.handler.CancellationTimeout
	switch {
	case timeout != nil && w.stage == signaled:
		w.stage = canceled
		w.setStopReason(stop.Canceled)
		w.cancel(errStopped)
		w.startTimer(time.Now().Add(*timeout))
	case timeout != nil:
		return w.abandon()
	case w.stage == signaled:
		w.stage = polling
		w.startTimer(time.Now().Add(w.pollInterval()))
	default:
		w.startTimer(time.Now().Add(w.pollInterval()))
		return warning{handler: w.handler, reason: ReasonStopping, message: fmt.Sprintf(
			"The daemon %s was asked to stop and is still running. The object is kept until it returns.", w.handler.ID)}
	}
	return warning{}
}

// pollInterval returns the interval between two warnings.
func (w *worker) pollInterval() time.Duration {
	if w.handler.CancellationPolling > 0 {
		return w.handler.CancellationPolling
	}
	return w.group.supervisor.options.CancellationPolling
}

// abandon stops waiting for the worker. The lock is held.
func (w *worker) abandon() warning {
	w.stopTimer()
	w.setPhase(abandoned)
	w.setStopReason(stop.Abandoned)
	w.group.supervisor.decrementAwaited()
	reason := ReasonAbandoned
	message := "The %s %s has not returned in time and is abandoned. It may still act, and its memory is not freed."
	if w.writing {
		reason = ReasonEditLost
		message = "The result and the patch of the %s %s could not be written in time and are lost."
	}
	return warning{handler: w.handler, reason: reason, requeue: w.isDaemon(), message: fmt.Sprintf(message, w.handler.Kind, w.handler.ID)}
}
