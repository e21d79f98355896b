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
	polled                 // it is waited for without end
)

// notice is what is to be told when the lock is not held any more.
// The zero value is nothing.
type notice struct {
	handler         *handler.Declaration
	reason, message string
	ended           bool
}

func (g *Group) tell(n notice) {
	if n.handler != nil {
		g.host.Warn(n.handler, n.reason, n.message)
	}
	if n.ended {
		g.host.Requeue()
	}
}

// halt stops the worker: at once if it does not run, by its stages if it is a
// running daemon, and after its call if it is a timer. The lock is held.
func (w *worker) halt(reason handler.StopReason) {
	w.mark(reason | handler.StopSignalled)
	switch {
	case w.phase == waiting:
		w.disarm()
		w.enter(off)
	case w.phase != running || w.told:
		return
	case w.daemon():
		w.told = true
		w.terminate()
	default:
		w.told = true
	}
}

// mark tells a daemon why it is to stop, and thereby that it is.
func (w *worker) mark(reason handler.StopReason) {
	if w.stop != nil {
		w.stop.Stop(reason)
	}
}

// terminate begins with the stages. The lock is held.
//
// Specification: Daemons, "Timeouts".
func (w *worker) terminate() {
	if backoff := w.handler.CancellationBackoff; backoff > 0 {
		w.arm(time.Now().Add(backoff))
		return
	}
	w.escalate()
}

// escalate takes the next stage of the termination. The lock is held.
func (w *worker) escalate() notice {
	timeout := w.handler.CancellationTimeout
	switch {
	case timeout != nil && w.stage == signalled:
		w.stage = cancelled
		w.mark(handler.StopCancelled)
		w.cancel(errStopped)
		w.arm(time.Now().Add(*timeout))
	case timeout != nil:
		return w.abandon()
	case w.stage == signalled:
		w.stage = polled
		w.arm(time.Now().Add(w.polling()))
	default:
		w.arm(time.Now().Add(w.polling()))
		return notice{handler: w.handler, reason: ReasonStopping, message: fmt.Sprintf(
			"The daemon %s was asked to stop, and is still running. The object is kept until it returns.", w.handler.ID)}
	}
	return notice{}
}

func (w *worker) polling() time.Duration {
	if w.handler.CancellationPolling > 0 {
		return w.handler.CancellationPolling
	}
	return w.group.supervisor.options.CancellationPolling
}

// abandon stops to wait for the worker. The lock is held.
func (w *worker) abandon() notice {
	w.disarm()
	w.enter(abandoned)
	w.mark(handler.StopAbandoned)
	w.group.supervisor.release()
	return notice{handler: w.handler, reason: ReasonAbandoned, ended: w.daemon(), message: fmt.Sprintf(
		"The %s %s has not returned in time, and is left to itself. It may still do something, and keeps its memory.", w.handler.Kind, w.handler.ID)}
}
