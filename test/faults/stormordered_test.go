package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
)

// In some storms, handlers follow others, and a timer has a schedule: each object has missed some runs when it is created,
// according to the record of its last run.

// Handlers that follow the success of another one, or a failure of one of others.
var (
	follows        = map[string]string{"second": "first", "again": "rescue"}
	followsFailure = map[string][]string{"rescue": {"first", "second"}}
)

// isInSequence reports whether a handler is one of those. A sequence handles each change as a whole: a handler that is ahead of
// the others sees a part of it again, and one that has seen a state that comes back after the others have handled it
// begins at theirs.
func isInSequence(id string) bool {
	return id == "first" || follows[id] != "" || followsFailure[id] != nil
}

const (
	// missedRuns is how many runs an object has missed: one for each year.
	missedRuns = 5
	runKey     = ourPrefix + "run.schedule"
)

// lineUp declares handlers with an order, and a timer with a schedule.
func (o *stormOperator) lineUp(r *kopf.Registry, kex kopf.Selector) {
	declare := func(id string, options ...kopf.ChangeOption) {
		handler := o.handle(id, nil)
		options = append(options, kopf.ID(id))
		r.OnCreate(kex, handler, options...)
		r.OnUpdate(kex, handler, options...)
	}
	declare("again", kopf.After("rescue"))
	declare("rescue", kopf.AfterFailure("first", "second"))
	declare("second", kopf.After("first"))
	declare("first")
	if !o.storm.statusRecords { // the last run is in an annotation
		r.Timer(kex, o.makeRun, kopf.ID("run"), kopf.Schedule("@yearly", kopf.CatchUp(100)))
	}
}

// newestRun returns the time of the last run that is due.
func newestRun() time.Time { return time.Date(time.Now().UTC().Year(), 1, 1, 0, 0, 0, 0, time.UTC) }

// recordOfLastRun returns the annotations of an object that has missed runs.
func recordOfLastRun() map[string]string {
	return map[string]string{runKey: fmt.Sprintf(`{"started":%q,"success":true}`, newestRun().AddDate(-missedRuns, 0, 0).Format(timeFormat))}
}

// lastRun returns the time of the last run that is recorded; zero if there is none, or if it cannot be read.
func (s state) lastRun() time.Time {
	record := storage.Record{}
	if s.body != nil {
		text, _ := s.body.Annotation(runKey)
		if json.Unmarshal([]byte(text), &record) != nil {
			return time.Time{}
		}
	}
	return record.Started
}

// outcomeOf returns whether a handler has ended in the open cycle, and how, for those that follow it.
func (s state) outcomeOf(id string) (succeeded, failed bool) {
	r := s.record(id)
	if r != nil && s.isLeftOver(r) {
		r = nil
	}
	open := s.open()
	_, isAhead := open.At[id]
	switch {
	case r != nil && r.Finished():
		return r.Success, r.Failure
	case isAhead: // it does not take part, so others do not wait for it
		return true, false
	}
	return false, false
}

// judgeTurn expects that the handlers that a handler follows have ended as it wants. One that was called already goes on. The
// subject is locked.
func (s *subject) judgeTurn(id string, c change) {
	if !s.storm.strict() || s.damaged || c.Retry() > 0 {
		return
	}
	if other := follows[id]; other != "" {
		if succeeded, _ := s.committed.outcomeOf(other); !succeeded {
			s.breach("%s was called before %s has succeeded", id, other)
		}
	}
	isFailed := func(other string) bool { _, failed := s.committed.outcomeOf(other); return failed }
	if others := followsFailure[id]; len(others) > 0 && !slices.ContainsFunc(others, isFailed) {
		s.breach("%s was called although none of %v has failed", id, others)
	}
}

// makeRun makes a run of the schedule. It succeeds, is retried, or fails, by chance.
func (o *stormOperator) makeRun(ctx context.Context, t *kopf.Tick) error {
	defer o.works()()
	s := o.storm.subject(t.Name())
	n, alive := s.ran(o, t)
	if !alive {
		return errDead
	}
	again, err := o.fail(ctx, "run", o.storm.dice(s.name, "run", n))
	if again {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !o.dead.Load() {
		s.made[runOf{string(t.UID()), t.Scheduled().Year()}] = true
		s.note("the run of %d has ended: %v", t.Scheduled().Year(), err)
	}
	if err != nil {
		return kopf.Permanent(err)
	}
	return nil
}

// runOf is a run for an object.
type runOf struct {
	uid  string
	year int
}

// ran notes the call of a run, and returns how many there were. It returns false if the operator is dead.
func (s *subject) ran(o *stormOperator, t *kopf.Tick) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.dead.Load() {
		return 0, false
	}
	year := t.Scheduled().Year()
	s.note("%s makes the run of %d, retry %d, on version %s", o.name, year, t.Retry(), t.Body().ResourceVersion())
	s.calls["run"]++
	if string(t.UID()) == s.uid && s.storm.strict() && !s.deleting { // otherwise, nothing needs the record anymore
		if last := s.committed.lastRun().Year(); year != last+1 {
			s.breach("%s makes the run of %d after that of %d", o.name, year, last)
		}
	}
	return s.calls["run"], true
}

// judgeRun checks that a write has changed the record of the last run only at the end of the next one. The subject is
// locked.
func (s *subject) judgeRun(w *stormWrite, before, after state) {
	was, is := before.lastRun().Year(), after.lastRun().Year()
	switch {
	case !s.storm.ordered || s.storm.statusRecords || was == is || s.deleting:
	case is != was+1 && s.storm.strict():
		s.breach("#%d records the run of %d after that of %d", w.number, is, was)
	case !s.made[runOf{string(after.body.UID()), is}]:
		s.breach("#%d records the run of %d, which has not ended", w.number, is)
	}
}

// hasRun returns an error unless all runs are made. The subject is locked.
func (s *subject) hasRun(now state) error {
	if s.storm.ordered && !s.storm.statusRecords && !now.lastRun().Equal(newestRun()) {
		return fmt.Errorf("the last run is that of %s", now.lastRun())
	}
	return nil
}
