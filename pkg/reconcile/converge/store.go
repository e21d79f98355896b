package converge

import (
	"slices"
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

// state is what the operator knows of the children of one owner.
type state struct {
	owner Owner
	// known are the wanted children as they were judged last.
	known map[Key]*fact
	// waits is set if the owner must be told about readiness.
	waits bool
	// busy is set during a call. Gone are the children that were deleted meanwhile.
	busy bool
	gone map[Key]types.UID
	// fights are the children that other clients keep changing; nil if there are none. Waiting
	// is set if the next restoration of one of them is due later.
	fights  map[Key]*fight
	waiting bool
}

// begin returns the state of an owner for one call.
func (c *Converger) begin(o Owner, waits bool) *state {
	hash := o.Hash()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[hash]
	if s == nil {
		s = &state{owner: o, known: map[Key]*fact{}}
		c.states[hash] = s
		c.owners[o.Parent.UID] = append(c.owners[o.Parent.UID], hash)
	}
	s.busy, s.gone, s.waits = true, nil, waits
	return s
}

// end ends a call. What has happened to the children meanwhile triggers another one.
func (c *Converger) end(s *state) {
	c.mu.Lock()
	s.busy = false
	again, delay := false, c.longestDelay()
	for key, known := range s.known {
		changed := false
		if uid, gone := s.gone[key]; gone && uid == known.uid {
			delete(s.known, key)
			changed = true
		} else if cached := c.facts[key]; cached != nil {
			changed = s.compare(known, cached)
		}
		if changed {
			again, delay = true, min(delay, s.fights[key].delay(c.Delays))
		}
	}
	s.gone = nil
	c.mu.Unlock()
	if again {
		c.trigger(s, delay)
	}
}

// compare reports whether a version of a child must be judged. Otherwise it becomes the known
// one, so that both share their memory.
func (s *state) compare(known, now *fact) bool {
	switch {
	case now.isOlder(known):
		return false
	case known.isSame(now, s.waits):
		s.known[now.Key] = now.judged()
		return false
	default:
		return true
	}
}

// observe reports whether the owner must be called because of a watch event.
func (s *state) observe(now *fact, deleted bool) bool {
	known := s.known[now.Key]
	switch {
	case s.busy && deleted:
		if s.gone == nil {
			s.gone = map[Key]types.UID{}
		}
		s.gone[now.Key] = now.uid
		return false
	case s.busy || known == nil:
		return false
	case deleted && known.uid != now.uid:
		return false
	case deleted:
		delete(s.known, now.Key)
		return true
	default:
		return s.compare(known, now)
	}
}

// observe stores a fact of a watch, and triggers the owners that it concerns.
func (c *Converger) observe(now *fact, deleted bool) {
	c.mu.Lock()
	former := c.facts[now.Key]
	if former != nil {
		c.remove(former)
	}
	if !deleted {
		c.put(now)
	}
	var triggered []*state
	if s := c.states[now.owner]; s != nil && s.observe(now, deleted) {
		triggered = append(triggered, s)
	}
	if former != nil && former.owner != now.owner {
		if s := c.states[former.owner]; s != nil && s.observe(now, deleted) {
			triggered = append(triggered, s)
		}
	}
	delays := map[*state]time.Duration{}
	for _, s := range triggered {
		delays[s] = s.fights[now.Key].delay(c.Delays)
	}
	c.mu.Unlock()
	for s, delay := range delays {
		c.trigger(s, delay)
	}
}

func (c *Converger) put(f *fact) {
	c.facts[f.Key] = f
	c.byOwner[f.owner] = append(slices.Clip(c.byOwner[f.owner]), f)
}

func (c *Converger) remove(f *fact) {
	delete(c.facts, f.Key)
	rest := slices.DeleteFunc(c.byOwner[f.owner], func(other *fact) bool { return other == f })
	if c.byOwner[f.owner] = rest; len(rest) == 0 {
		delete(c.byOwner, f.owner)
	}
}

// replace stores the complete list of a watch. What it does not have is deleted, unless it is
// younger than the list.
func (c *Converger) replace(covers func(Key) bool, list []*fact, version string) {
	present := map[Key]bool{}
	for _, f := range list {
		present[f.Key] = true
	}
	for _, missing := range c.missing(covers, present, version) {
		c.observe(missing, true)
	}
	for _, f := range list {
		c.observe(f, false)
	}
}

// missing returns the facts that a complete list does not have.
func (c *Converger) missing(covers func(Key) bool, present map[Key]bool, version string) []*fact {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[Key]*fact{}
	note := func(f *fact) {
		if covers(f.Key) && !present[f.Key] && compareVersions(f.version, version) <= 0 {
			found[f.Key] = f
		}
	}
	for _, f := range c.facts {
		note(f)
	}
	for _, s := range c.states {
		for _, f := range s.known {
			note(f)
		}
	}
	var missing []*fact
	for _, f := range found {
		missing = append(missing, f)
	}
	return missing
}

// view returns the latest version of a child, and the one that was judged last.
func (c *Converger) view(s *state, key Key) (live, known *fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, live = s.known[key], c.facts[key]
	if known != nil && (s.gone[key] == known.uid) {
		delete(s.known, key)
		known = nil
	}
	if live == nil || known != nil && live.isOlder(known) {
		live = known
	}
	return live, known
}

// note stores what the owner has judged, or what the server has answered.
func (c *Converger) note(s *state, f *fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.known[f.Key] = f.judged()
}

// childrenOf returns the children of an owner, also those that the watch does not show yet.
func (c *Converger) childrenOf(s *state) map[Key]*fact {
	hash := s.owner.Hash()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[Key]*fact{}
	for _, f := range c.byOwner[hash] {
		all[f.Key] = f
	}
	for key, known := range s.known {
		if cached := all[key]; (cached == nil || cached.isOlder(known)) && known.owner == hash && s.gone[key] != known.uid {
			all[key] = known
		}
	}
	return all
}

// retain forgets the children that are not wanted anymore.
func (c *Converger) retain(s *state, wanted map[Key]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range s.known {
		if !wanted[key] {
			delete(s.known, key)
		}
	}
}

// Forget drops what is known of the children of a parent that is gone.
func (c *Converger) Forget(parent types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range c.owners[parent] {
		delete(c.states, hash)
	}
	delete(c.owners, parent)
}
