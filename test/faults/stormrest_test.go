package faults

import (
	"context"
	"slices"
	"time"
)

// rest checks that nothing is written when all objects are listed again, because they need no
// more work.
func (s *storm) rest() {
	quiet := 3 * lull
	if s.isVirtual {
		quiet = 5 * time.Second // a watch that begins again waits for some seconds, and can show what happened before
	}
	for until := time.Now().Add(stuck); (s.hasRivals() || s.quiet() < quiet) && time.Now().Before(until); {
		<-time.After(10 * time.Millisecond) // what an operator writes last is answered, and one that has met an error waits before it goes on
	}
	before := s.written()
	if o := s.operator; o.mayBreakWatches() {
		o.breaks.Add(1)
		listed := o.listed.Load()
		o.watches.cut()
		o.nursery.cut()
		<-time.After(10 * time.Millisecond)
		o.watches.open()
		o.nursery.open()
		for until := time.Now().Add(stuck); o.listed.Load() == listed && time.Now().Before(until); {
			<-time.After(10 * time.Millisecond)
		}
	}
	<-time.After(lull)
	if writes := s.written() - before; writes > 0 {
		s.breach("%d writes at rest", writes)
	}
}

// hasRivals reports whether an earlier operator has not ended.
func (s *storm) hasRivals() bool {
	standby := s.standby.Load()
	return slices.ContainsFunc(s.everyone(), func(o *stormOperator) bool { return !o.dead.Load() && o != s.operator && o != standby })
}

// restart checks that the next operator writes to no child, because all of them are as they must be.
func (s *storm) restart() {
	if !s.families {
		return
	}
	before := s.writtenToChildren()
	last := s.operator
	last.stop()
	for s.operator == last {
		select {
		case o := <-s.crashed:
			s.replace(o)
		case <-s.failed:
			s.t.SkipNow()
		}
	}
	s.isRestarted = true
	s.settle("restart", (*subject).rested)
	if writes := s.writtenToChildren() - before; writes > 0 {
		s.breach("%d writes to children after a restart", writes)
	}
}

// everyone returns all operators so far.
func (s *storm) everyone() []*stormOperator {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.operators)
}

func (s *storm) writtenToChildren() (writes int) {
	for _, subject := range s.subjects {
		subject.mu.Lock()
		if !subject.damaged && !s.rivals {
			writes += subject.childWrites
		}
		subject.mu.Unlock()
	}
	return writes
}

// written counts all requests to write to objects that are not being deleted: the watch of a busy
// operator can show the end of an object late.
func (s *storm) written() (writes int) {
	for _, subject := range s.subjects {
		subject.mu.Lock()
		if !subject.deleting {
			writes += subject.writes + subject.childWrites
		}
		subject.mu.Unlock()
	}
	return writes
}

// longest is the timeout of a handler, and dawdling how late a call may be.
const (
	longest  = 200 * time.Millisecond
	dawdling = 500 * time.Millisecond
)

// judgeTime checks the deadline of a call: the timeout is for all attempts, except for the time of
// suspensions.
func (s *subject) judgeTime(ctx context.Context, id string, c change) {
	if id != "timed" || s.storm.served { // the deadline of a call stays in the operator
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline, limited := ctx.Deadline()
	record := s.committed.record(id)
	switch {
	case !limited:
		s.breach("%s was called without a deadline", id)
	case time.Since(deadline) > dawdling+2*heart.pause():
		s.breach("%s was called %s after its deadline", id, time.Since(deadline))
	case !s.storm.strict() || s.damaged || s.storm.requests || s.storm.kopf || s.storm.pauses || record == nil || c.Retry() == 0 || record.Retries != c.Retry() || record.Purpose != c.Reason():
	case deadline.After(record.Started.Add(longest + time.Millisecond)):
		s.breach("%s may take %s since its first attempt", id, deadline.Sub(record.Started))
	}
}
