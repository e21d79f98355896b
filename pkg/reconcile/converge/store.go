package converge

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// state is what the operator knows of the children of one owner.
type state struct {
	owner Owner
	// known are the wanted children as they were judged last.
	known   map[Key]*fact
	options *convergence.Options
	// busy is set during a call. Gone are the children that were deleted meanwhile, and seen has
	// the versions of changed children when it began: if it fails, they alone do not trigger
	// another call.
	busy bool
	gone map[Key]types.UID
	seen map[Key]string
	// strays are the children that have appeared during a call, and that it does not know yet. Nil if there
	// are none.
	strays map[Key]struct{}
	// doubtful are children whose creation was not answered, with their resources: they may exist before a
	// watch shows them. Nil if there are none.
	doubtful map[Key]selector.Resource
	// fights are the children that other clients keep changing; nil if there are none. Waiting
	// is set if the next restoration of one of them is due later.
	fights  map[Key]*fight
	waiting bool
	// asks is set if a handler decides about what others change. Then the owner remembers in
	// unresolved what it has not decided yet, or nil.
	asks       bool
	unresolved *unresolved
}

// begin returns the state of an owner for one call.
func (c *Converger) begin(o Owner, options *convergence.Options, asks bool) *state {
	hashes := c.hashesOf(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[hashes[0]]
	if s == nil {
		s = &state{owner: o, known: map[Key]*fact{}}
		for _, hash := range hashes {
			c.states[hash] = s
		}
		c.owners[o.Parent.UID] = append(c.owners[o.Parent.UID], hashes...)
	}
	s.busy = true
	s.gone = nil
	s.options = options
	s.asks = asks
	maps.DeleteFunc(s.fights, func(_ Key, f *fight) bool { return f.isOver(c.Delays) })
	s.seen = map[Key]string{}
	for key, known := range s.known {
		if cached := c.facts[key]; cached != nil && cached.version != known.version {
			s.seen[key] = cached.version
		}
	}
	return s
}

// end ends a call that wanted some children. What has happened to the children meanwhile triggers another one.
func (c *Converger) end(s *state, wanted map[Key]bool) {
	c.mu.Lock()
	s.busy = false
	again := false
	delay := longest(c.Delays)
	for key, known := range s.known {
		changed := false
		if uid, gone := s.gone[key]; gone && uid == known.uid {
			s.lose(key, uid)
			changed = true
		} else if cached := c.facts[key]; cached != nil && cached.version != s.seen[key] {
			changed = s.compare(known, cached)
		}
		if changed {
			again = true
			delay = min(delay, s.fights[key].delay(c.Delays))
		}
	}
	for key := range s.strays {
		if f := c.facts[key]; f != nil && !wanted[key] && s.isStray(f) {
			again = true
			delay = 0
		}
	}
	for _, uid := range s.gone {
		s.forgetDeletion(uid)
	}
	s.gone = nil
	s.seen = nil
	s.strays = nil
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
	case known.isSame(now, s.options.WaitReady):
		s.known[now.Key] = now.judged()
		return false
	default:
		return true
	}
}

// isStray reports whether a child must be deleted if it is not wanted.
func (s *state) isStray(f *fact) bool {
	return f.isChildOf(s.owner.Parent.UID) && !f.keep && s.options.MayPrune(f.GroupKind)
}

// observe reports whether the owner must be called because of a watch event. A child appears if it
// was not there before, or was not the owner's: created by a request whose answer was lost, or by another replica.
func (s *state) observe(now *fact, appears, deleted bool) bool {
	known := s.known[now.Key]
	switch {
	case s.busy && deleted:
		if s.gone == nil {
			s.gone = map[Key]types.UID{}
		}
		s.gone[now.Key] = now.uid
		return false
	case known == nil && deleted:
		s.forgetDeletion(now.uid)
		return false
	case s.busy && known == nil && appears:
		if s.strays == nil {
			s.strays = map[Key]struct{}{}
		}
		s.strays[now.Key] = struct{}{}
		return false
	case s.busy:
		return false
	case known == nil:
		return appears && !s.isLost(now.Key) && s.isStray(now)
	case deleted && known.uid != now.uid:
		return false
	case deleted:
		s.lose(now.Key, now.uid)
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
	} else if !deleted && now.isApplied() && c.Seen != nil {
		c.Seen(now.marks.Parent, now.marks.Handler)
	}
	if !deleted {
		c.put(now)
	}
	var triggered []*state
	appears := former == nil || former.owner != now.owner
	if s := c.states[now.owner]; s != nil && s.observe(now, appears, deleted) {
		triggered = append(triggered, s)
	}
	if former != nil && former.owner != now.owner {
		if s := c.states[former.owner]; s != nil && s.observe(now, false, deleted) {
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
	c.byOwner[f.owner] = rest
	if len(rest) == 0 {
		delete(c.byOwner, f.owner)
	}
}

// replace stores the complete list of a watch. What it does not have is deleted, unless it is
// younger than the list. A list of another history of the cluster cannot be compared with what is
// known, so all of that is gone.
func (c *Converger) replace(covers func(Key) bool, list []*fact, version string, another bool) {
	isGone := func(f *fact) bool { return another || compareVersions(f.version, version) <= 0 }
	present := map[Key]bool{}
	for _, f := range list {
		present[f.Key] = !another
	}
	for _, missing := range c.missing(func(f *fact) bool { return covers(f.Key) && !present[f.Key] && isGone(f) }) {
		c.observe(missing, true)
	}
	for _, f := range list {
		c.observe(f, false)
	}
}

// missing returns the facts that a complete list does not have.
func (c *Converger) missing(isMissing func(*fact) bool) []*fact {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[Key]*fact{}
	note := func(f *fact) {
		if isMissing(f) {
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
	return slices.Collect(maps.Values(found))
}

// view returns the latest version of a child, and the one that was judged last.
func (c *Converger) view(s *state, key Key) (live, known *fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known = s.known[key]
	live = c.facts[key]
	if known != nil && (s.gone[key] == known.uid) {
		s.lose(key, known.uid)
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
	s.find(f.Key)
	s.settle(f.Key)
}

// doubt notes that a child may have been created.
func (c *Converger) doubt(s *state, key Key, r selector.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.doubtful == nil {
		s.doubtful = map[Key]selector.Resource{}
	}
	s.doubtful[key] = r
}

// settle notes that it is known what has become of the creation of a child. It is called with the mutex.
func (s *state) settle(key Key) {
	delete(s.doubtful, key)
	if len(s.doubtful) == 0 {
		s.doubtful = nil
	}
}

// childrenOf returns the children of an owner, also those that the watch does not show yet. So there are no strays.
func (c *Converger) childrenOf(s *state) map[Key]*fact {
	hashes := c.hashesOf(s.owner)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.strays = nil
	all := map[Key]*fact{}
	for _, hash := range hashes {
		for _, f := range c.byOwner[hash] {
			all[f.Key] = f
		}
	}
	for key, known := range s.known {
		if cached := all[key]; (cached == nil || cached.isOlder(known)) && slices.Contains(hashes, known.owner) && s.gone[key] != known.uid {
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
	s.retainUnresolved(wanted)
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
