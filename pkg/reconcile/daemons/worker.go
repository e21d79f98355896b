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
	handler *handler.Declaration
	series  execution.Attempts

	// alarm rings when the worker is due: to be called, or to be stopped with
	// more force. nil: it was never armed.
	alarm *time.Timer
	due   time.Time // zero: nothing is due

	earliest time.Time // the end of the initial delay
	began    time.Time // when the last call was due: the grid of a sharp timer
	seen     uint32    // the changes of the object that the last call has seen

	phase phase
	stage stage
	told  bool // to stop

	// Of a daemon while its goroutine is there.
	stop   *handler.Stopper
	cancel context.CancelCauseFunc
}

// is tells whether the worker is for the handler. A function that is declared
// several times with one id is one handler.
func (w *worker) is(d *handler.Declaration) bool { return w.handler.ID == d.ID }

func (w *worker) daemon() bool { return w.handler.Kind == handler.OnDaemon }

// alive tells whether there is anything to stop.
func (w *worker) alive() bool {
	return w.phase == waiting || w.phase == running || w.phase == abandoned
}

// want starts the worker if it is off. One that runs for another declaration of
// the handler, with other parameters, has to stop before.
func (w *worker) want(d *handler.Declaration) {
	if w.handler != d {
		w.halt(handler.StopMismatch)
	}
	switch {
	case w.phase == off:
		w.handler, w.series = d, execution.Attempts{}
		w.enter(waiting)
		w.arm(later(later(time.Now(), w.earliest), w.stable()))
	case w.phase == running && w.handler == d && !w.daemon():
		w.told = false // the call goes on, and so does the schedule after it
	}
}

// stable is when the object has been idle for as long as the handler wants.
func (w *worker) stable() time.Time { return w.group.changed.Add(w.handler.Idle) }

// arm sets the alarm. It rings a little later than it could, together with others:
// to wake an idle processor for each of them costs ten times what a call does.
func (w *worker) arm(at time.Time) {
	w.due = at
	delay := time.Until(at)
	delay += w.group.supervisor.together(at, delay)
	if w.alarm == nil {
		w.alarm = time.AfterFunc(delay, w.ring)
		return
	}
	w.alarm.Reset(delay)
}

// together is how long an alarm is put off to ring with others: a hundredth of its
// delay at most, and never longer than anybody would notice.
func (s *Supervisor) together(at time.Time, delay time.Duration) time.Duration {
	slack := 10 * time.Millisecond
	switch {
	case delay < 100*time.Millisecond:
		return 0
	case delay < time.Second:
		slack = time.Millisecond
	}
	if over := at.Sub(s.began) % slack; over > 0 {
		return slack - over
	}
	return 0
}

func (w *worker) disarm() {
	w.due = time.Time{}
	if w.alarm != nil {
		w.alarm.Stop()
	}
}
