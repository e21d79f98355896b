package daemons

import (
	"errors"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/storage"
)

// scheduled is what a worker knows about the schedule of its timer. The supervisor's lock guards it.
type scheduled struct {
	seen    seen
	planned string // the schedule of the planned run
	// mustLook is set if a pass has seen another schedule during a call.
	mustLook bool
}

// seen is what the last look at the schedule of an object has found. Its zero value means that there was none.
type seen struct {
	text string // the schedule, or a text that cannot be read
	// since is when the schedule replaced another one, or the time of the last run of this process. Its next runs are
	// later. It is zero if only what is stored on the object says that.
	since   time.Time
	failure string // why the next run is unknown, as it was reported; empty if it is known
}

// follow returns what is seen at a look that finds a schedule. In the first look, the one of the last run is
// the former one; it is empty if it is unknown.
func (s seen) follow(text, lastRun string, now time.Time) seen {
	isFirst := s == seen{}
	isOther := s.text != text
	if isFirst {
		isOther = lastRun != "" && lastRun != text
	}
	after := seen{text: text, since: s.since}
	if isOther {
		after.since = now
	}
	return after
}

// fail returns what is seen at a look that finds no schedule because of an error: it can be still the former one.
func (s seen) fail(lastRun string) seen {
	if s == (seen{}) {
		s.text = lastRun
	}
	return s
}

// look returns the next run of a timer with a schedule, for the object as it is now, and what was seen. If the next run
// cannot be known, that is reported, but not again before something else is seen. It runs code of users. A run that
// has just been made is the last one; it is zero if it is stored on the object.
func (g *Group) look(d *handler.Declaration, before seen, ran time.Time) (n next, after seen) {
	now := time.Now()
	host := g.currentHost()
	after = before
	err := handler.WithRecover(func() error {
		ctx, call := host.Prepare(g.supervisor.handlerCtx, d)
		call.Patch = &patch.Patch{}
		last := storage.Record{Started: ran}
		if ran.IsZero() {
			stored, err := host.LastRun(ctx, d)
			if err != nil {
				return err
			}
			last = stored
		}
		after = before.fail(last.Schedule)
		found, err := d.Schedule.Read(handler.NewCall(d, call, handler.Attempt{}))
		unreadable := (*handler.UnreadableScheduleError)(nil)
		switch {
		case errors.As(err, &unreadable):
			after = before.follow(unreadable.Text, last.Schedule, now)
			return err
		case err != nil:
			return err
		}
		after = before.follow(found.String(), last.Schedule, now)
		n.schedule = after.text
		n.run, err = d.Schedule.NextRun(found, latest(last.Started, after.since), now)
		return err
	})
	if err == nil {
		return n, after
	}
	delay := time.Duration(0)
	unreadable := (*handler.UnreadableScheduleError)(nil)
	if !errors.As(err, &unreadable) { // other errors can depend on more than the object
		delay = max(g.supervisor.delayAfter(d, 0), minLook)
		n.look = now.Add(delay)
	}
	after.failure = err.Error()
	if after != before {
		host.ReportUnscheduled(d, err, delay)
	}
	return n, after
}

// minLook is the shortest time between two looks at a schedule that fail.
const minLook = time.Second

// lookAfter looks at the schedule after a call of the timer, which was for a run, or after a time without one.
func (w *worker) lookAfter(ran *time.Time) next {
	s := w.group.supervisor
	s.mu.Lock()
	before := w.scheduled.seen
	w.scheduled.mustLook = false
	s.mu.Unlock()
	last := time.Time{}
	if ran != nil {
		last = *ran
	}
	n, after := w.group.look(w.handler, before, last)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.scheduled.seen == before { // otherwise, a pass has seen a later version of the object, and the worker looks again
		w.scheduled.seen = after
	}
	return n
}

// lookInPass looks at the schedule of a timer in a pass over the object. What has been planned is changed if the object
// has got another schedule; the run of a timer that starts is planned.
func (g *Group) lookInPass(d *handler.Declaration, isStarting bool) {
	g.supervisor.mu.Lock()
	w := g.workerOf(d)
	if w == nil || w.scheduled == nil {
		g.supervisor.mu.Unlock()
		return
	}
	before := w.scheduled.seen
	g.supervisor.mu.Unlock()
	n, after := g.look(d, before, time.Time{})
	g.supervisor.mu.Lock()
	defer g.supervisor.mu.Unlock()
	isSame := w.scheduled.seen == after
	if w.scheduled.seen == before {
		w.scheduled.seen = after
	} else { // a call has ended meanwhile, and has been counted
		n = next{look: time.Now()}
	}
	switch {
	case isStarting:
		w.notBefore = w.plan(n)
	case w.phase == waiting:
		w.reschedule(n)
	default:
		w.scheduled.mustLook = w.scheduled.mustLook || !isSame
	}
}

// plan sets the next run, and returns when the worker is due; zero if that depends on the next change of the object. The
// lock is held.
func (w *worker) plan(n next) (due time.Time) {
	w.plannedFor = n.run
	w.scheduled.planned = n.schedule
	return latest(n.run, n.look)
}

// reschedule postpones or advances the run of a schedule that the object has changed. A run that is being repeated
// after an error remains. The lock is held.
func (w *worker) reschedule(n next) {
	if w.attempts.Retries() > 0 {
		return
	}
	isSame := n.run.Equal(w.plannedFor)
	if n.run.IsZero() {
		isSame = isSame && n.look.IsZero() == w.due.IsZero()
	}
	due := w.plan(n)
	if isSame {
		return
	}
	w.returnSlot()
	if due.IsZero() {
		w.stopTimer()
		return
	}
	w.startTimer(due)
}

// markRun counts a run that has ended, so that it is not made again while the object in memory is older, and returns
// its schedule.
func (w *worker) markRun(run time.Time) (schedule string) {
	s := w.group.supervisor
	s.mu.Lock()
	defer s.mu.Unlock()
	w.scheduled.seen.since = latest(w.scheduled.seen.since, run)
	return w.scheduled.planned
}

// forgetPlan forgets the next run, so that the worker looks for it when it starts again. The lock is held.
func (w *worker) forgetPlan() {
	if w.scheduled != nil {
		w.plan(next{})
		w.notBefore = time.Time{}
	}
}
