package login

import "sync"

// singleFlight runs work once for all concurrent callers. Unlike x/sync/singleflight it
// starts under the lock of the caller, together with the decision that work is needed.
type singleFlight struct{ done chan struct{} }

// start starts the work unless it is running already, and returns a channel that is
// closed at its end. The caller must hold the lock; the work runs without it.
func (s *singleFlight) start(lock sync.Locker, work func()) <-chan struct{} {
	if s.done == nil {
		s.done = make(chan struct{})
		go func() {
			work()
			lock.Lock()
			defer lock.Unlock()
			close(s.done)
			s.done = nil
		}()
	}
	return s.done
}
