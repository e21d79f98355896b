package converge

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// caller identifies a handler of a parent.
type caller struct {
	parent  types.UID
	handler string
}

// Follow calls a function whenever the handler of a parent must be called because of what others
// have done to the children, until it is stopped. It is called without locks.
func (c *Converger) Follow(parent types.UID, handler string, call func()) (stop func()) {
	key := caller{parent, handler}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[key] = call
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, key)
	}
}

// trigger calls the function of Follow: now, or after a delay.
func (c *Converger) trigger(s *state, delay time.Duration) {
	c.mu.Lock()
	call := c.calls[caller{s.owner.Parent.UID, s.owner.Handler}]
	postponed := delay > 0 && s.waiting
	s.waiting = s.waiting || delay > 0
	c.mu.Unlock()
	switch {
	case call == nil || postponed:
	case delay == 0:
		call()
	default:
		time.AfterFunc(delay, func() {
			c.mu.Lock()
			s.waiting = false
			call := c.calls[caller{s.owner.Parent.UID, s.owner.Handler}]
			c.mu.Unlock()
			if call != nil {
				call()
			}
		})
	}
}
