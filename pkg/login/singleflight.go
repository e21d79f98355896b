package login

import "sync"

// singleFlight is work that is done once for all who want it at the same time.
type singleFlight struct{ done chan struct{} }

// start starts the work, unless it is going on already. The returned channel is
// closed when it has ended. The lock must be held; the work is done without it.
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
