package apiserver

import "sync"

// streams tells all watches what to do, besides sending events. The zero value is ready.
type streams struct {
	mu     sync.Mutex
	now    orders
	signal chan struct{} // closed by the next order
}

// orders counts the orders to all watches, so that each of them can tell what is new.
type orders struct {
	ends, bookmarks int
}

// current returns the orders until now, and a channel that is closed by the next one.
func (s *streams) current() (orders, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signal == nil {
		s.signal = make(chan struct{})
	}
	return s.now, s.signal
}

// issue gives an order.
func (s *streams) issue(change func(*orders)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.now)
	if s.signal != nil {
		close(s.signal)
		s.signal = nil
	}
}
