package faults

import (
	"time"
)

// progressPatience is how long an operator may take to read an object whose watch is late: a
// long time for a busy machine.
const progressPatience = 5 * time.Second

// stallUntilRead holds back the watches until the operator reads the object, which it must do
// because it has something to do, unless it goes on in the same pass.
func (w *stormWrite) stallUntilRead() {
	s := w.subject
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadBy != nil || w.dead.Load() || s.storm.calm.Load() || number(w.version()) < s.born {
		return // the write is about an earlier object of the name, which the operator need not read
	}
	w.watches.hold()
	s.unread, s.unreadBy, s.unreadUID = make(chan struct{}), w.stormOperator, s.uid
}

// noteRead notes that the operator has read the object, or goes on without. The subject is locked.
func (s *subject) noteRead(o *stormOperator) {
	if s.unreadBy == o && o != nil {
		close(s.unread)
		s.unreadBy = nil
		o.watches.release()
	}
}

// awaitRead waits until the object is read whose watch is late.
func (s *subject) awaitRead() {
	s.mu.Lock()
	o, unread := s.unreadBy, s.unread
	s.mu.Unlock()
	if o == nil {
		return
	}
	select {
	case <-unread:
	case <-s.storm.failed:
	case <-time.After(progressPatience):
		s.mu.Lock()
		defer s.mu.Unlock()
		if shut := o.watches.release(); shut && s.unreadBy == o {
			s.breach("the watch of %s was late for %s, and the object was not read", o.name, progressPatience)
		}
	}
}
