package daemons

import (
	"context"
	"time"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// phase is what a worker is doing.
type phase uint8

const (
	off       phase = iota // it may start when its handler matches
	waiting                // for its time; or for the next change, if it has none
	running                // its goroutine is there, and is awaited
	abandoned              // its goroutine is there, and is not awaited
	ended                  // for ever
)

// worker is one handler of one object. There is one for every pair of them:
// every field must be worth its bytes. It is guarded by the supervisor's lock,
// but for the series, which belongs to the goroutine while there is one.
type worker struct {
	group *Group
	// handler changes only while the worker is off.
	handler  *handler.Declaration
	attempts execution.Attempts

	// alarm rings when the worker is due: to be called, or to be stopped with
	// more force. nil: it was never armed.
	timer *time.Timer
	due   time.Time // zero: nothing is due

	notBefore   time.Time // the end of the initial delay
	lastDue     time.Time // when the last call was due: the grid of a sharp timer
	seenChanges uint32    // the changes of the object that the last call has seen

	phase         phase
	stage         stage
	stopRequested bool // to stop

	// Of a daemon while its goroutine is there.
	stopper *handler.Stopper
	cancel  context.CancelCauseFunc
}

// is tells whether the worker is for the handler. A function that is declared
// several times with one id is one handler.
func (w *worker) isFor(d *handler.Declaration) bool { return w.handler.ID == d.ID }

func (w *worker) isDaemon() bool { return w.handler.Kind == handler.OnDaemon }

// alive tells whether there is anything to stop.
func (w *worker) isActive() bool {
	return w.phase == waiting || w.phase == running || w.phase == abandoned
}

// want starts the worker if it is off. One that runs for another declaration of
// the handler, with other parameters, has to stop before.
func (w *worker) ensureStarted(d *handler.Declaration) {
	if w.handler != d {
		w.requestStop(handler.StopMismatch)
	}
	switch {
	case w.phase == off:
		w.handler, w.attempts = d, execution.Attempts{}
		w.setPhase(waiting)
		w.startTimer(latest(latest(time.Now(), w.notBefore), w.idleSince()))
	case w.phase == running && w.handler == d && !w.isDaemon():
		w.stopRequested = false // the call goes on, and so does the schedule after it
	}
}

// stable is when the object has been idle for as long as the handler wants.
func (w *worker) idleSince() time.Time { return w.group.lastChange.Add(w.handler.Idle) }

// arm sets the alarm. It rings a little later than it could, together with others:
// to wake an idle processor for each of them costs ten times what a call does.
func (w *worker) startTimer(at time.Time) {
	w.due = at
	delay := time.Until(at)
	delay += w.group.supervisor.coalesce(at, delay)
	if w.timer == nil {
		w.timer = time.AfterFunc(delay, w.onTimer)
		return
	}
	w.timer.Reset(delay)
}

// together is how long an alarm is put off to ring with others: a hundredth of its
// delay at most, and never longer than anybody would notice.
func (s *Supervisor) coalesce(at time.Time, delay time.Duration) time.Duration {
	slack := 10 * time.Millisecond
	switch {
	case delay < 100*time.Millisecond:
		return 0
	case delay < time.Second:
		slack = time.Millisecond
	}
	if over := at.Sub(s.started) % slack; over > 0 {
		return slack - over
	}
	return 0
}

func (w *worker) stopTimer() {
	w.due = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}
