package faults

import (
	"bytes"
	"time"
)

// Two operators overlap for a moment if a leader does not know that it has lost its lease.
// Either can be faster. At most one outcome of an attempt counts then.

// mostRivals limits the overlaps while a storm rages, and rivalPatience is how long a write waits for the
// rival.
const (
	mostRivals    = 6
	rivalPatience = 700 * time.Millisecond
)

// mayHaveRival reports whether another operator may start before the write.
func (w *stormWrite) mayHaveRival() bool { return w.storm.rivals && !w.dry() }

// mayHaveRivalEdit reports whether another operator may start before the write of a transformation.
func (w *stormWrite) mayHaveRivalEdit() bool {
	return w.mayHaveRival() && bytes.Contains(w.body(), []byte(`"`+journal+`":`))
}

// mayBeReleased reports whether another operator may start before the release of an object that
// others hold.
func (w *stormWrite) mayBeReleased() bool {
	return w.mayHaveRival() && w.releases() && contains(w.subject.committed.body.Finalizers(), otherFinalizer)
}

// awaitRival starts another operator, and waits until it has written to the object.
func (w *stormWrite) awaitRival() {
	w.storm.challenged <- w.stormOperator
	until := time.Now().Add(rivalPatience)
	for time.Now().Before(until) && !w.subject.isWrittenByRival(w.stormOperator) {
		<-time.After(2 * time.Millisecond)
	}
	<-time.After(upTo(w.dice, 50*time.Millisecond))
}

func (s *subject) isWrittenByRival(o *stormOperator) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer != nil && s.writer != o
}

// challenge starts another operator, while the current one works for some more time.
func (s *storm) challenge(o *stormOperator) {
	if o != s.operator || s.challenges >= mostRivals {
		return
	}
	s.challenges++
	s.start()
	dice := s.dice("rival", s.challenges)
	leave := oneOf(dice, (*stormOperator).die, (*stormOperator).stop)
	time.AfterFunc(rivalPatience+100*time.Millisecond, func() { leave(o) })
}
