package converge

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/contention"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// store has what the operator knows of the children of all parents. Watches tell it what has
// happened to them, and it triggers the handlers that this concerns.
type store struct {
	rule contention.Rule // of the restorations of a child
	seen func(parent, handler string)

	mu      sync.Mutex
	facts   map[Key]*fact          // by watches
	byOwner map[string][]*fact     // the same, by the hash of the owner
	states  map[string]*state      // by the hash of the owner
	owners  map[types.UID][]string // the hashes of the owners of a parent
	calls   map[caller]func()      // what calls a handler of a parent again
}

// state contains what the operator knows of the children of one owner. Nearly all owners need only the
// first few fields, so the other maps are nil while they have no entries. The mutex of the store
// guards it.
type state struct {
	owner   Owner
	options *convergence.Options
	// known are the wanted children as they were judged last.
	known map[Key]*fact
	// running records the events of the children during a call; nil if none is running.
	running *running
	// lost are children that others have deleted, until they exist again. The value is set as
	// long as no handler has decided about that. Deleted are those that the operator has deleted
	// itself and that are not gone yet.
	lost    map[Key]bool
	deleted map[types.UID]struct{}
	// undecided are the changed fields of children about which a decision has failed, with the
	// hashes of what is wanted: they must not be restored together with something else.
	undecided map[Key]accepted
	// unanswered are children whose creation was not answered, with their resources: they may
	// exist before a watch shows them.
	unanswered map[Key]selector.Resource
	// contended are the children that other clients keep changing. Waiting is set if the next
	// restoration of one of them is due later.
	contended map[Key]contention.Count
	waiting   bool
}

// running records the events of the children of an owner since its call began.
type running struct {
	// gone are the children that were deleted.
	gone map[Key]types.UID
	// seen has the versions of children that had changed before: if the call fails, they alone do
	// not trigger another one.
	seen map[Key]string
	// strays are the children that have appeared, and that the call does not know yet.
	strays map[Key]struct{}
}

// set adds an entry to a map that can be nil.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// unset removes an entry. A map without entries becomes nil.
func unset[K comparable, V any](m *map[K]V, key K) {
	delete(*m, key)
	if len(*m) == 0 {
		*m = nil
	}
}

// lose forgets a child that is gone, and remembers whether another client has deleted it.
func (s *state) lose(key Key, uid types.UID) {
	delete(s.known, key)
	unset(&s.undecided, key)
	if _, isOurs := s.deleted[uid]; !isOurs {
		set(&s.lost, key, true)
	}
	unset(&s.deleted, uid)
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
	_, isLost := s.lost[now.Key]
	switch {
	case s.running != nil && deleted:
		s.running.gone[now.Key] = now.uid
		return false
	case known == nil && deleted:
		unset(&s.deleted, now.uid)
		return false
	case s.running != nil && known == nil && appears:
		s.running.strays[now.Key] = struct{}{}
		return false
	case s.running != nil:
		return false
	case known == nil:
		return appears && !isLost && s.isStray(now)
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
func (s *store) observe(now *fact, deleted bool) {
	s.mu.Lock()
	former := s.facts[now.Key]
	if former != nil {
		s.remove(former)
	} else if !deleted && now.isApplied() && s.seen != nil {
		s.seen(now.marks.Parent, now.marks.Handler)
	}
	if !deleted {
		s.facts[now.Key] = now
		s.byOwner[now.owner] = append(slices.Clip(s.byOwner[now.owner]), now)
	}
	delays := map[*state]time.Duration{}
	tell := func(owner string, appears bool) {
		of := s.states[owner]
		if of != nil && of.observe(now, appears, deleted) {
			delays[of] = of.contended[now.Key].Left(s.rule, time.Now())
		}
	}
	tell(now.owner, former == nil || former.owner != now.owner)
	if former != nil && former.owner != now.owner {
		tell(former.owner, false)
	}
	s.mu.Unlock()
	for of, delay := range delays {
		s.trigger(of, delay)
	}
}

// remove removes a fact. It is called with the mutex.
func (s *store) remove(f *fact) {
	delete(s.facts, f.Key)
	rest := slices.DeleteFunc(s.byOwner[f.owner], func(other *fact) bool { return other == f })
	s.byOwner[f.owner] = rest
	if len(rest) == 0 {
		delete(s.byOwner, f.owner)
	}
}

// leave removes the facts of children whose controllers are not ours. It triggers nothing.
func (s *store) leave(isOurs func(namespace string, controller types.UID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.facts {
		if f.controller != "" && !isOurs(f.Namespace, f.controller) {
			s.remove(f)
		}
	}
}

// replace stores the complete list of a watch. What it does not have is deleted, unless it is
// younger than the list. A list of another history of the cluster cannot be compared with what is
// known, so all of that is gone.
func (s *store) replace(covers func(Key) bool, list []*fact, version string, another bool) {
	present := map[Key]bool{}
	for _, f := range list {
		present[f.Key] = !another
	}
	missing := map[Key]*fact{}
	look := func(f *fact) {
		if covers(f.Key) && !present[f.Key] && (another || compareVersions(f.version, version) <= 0) {
			missing[f.Key] = f
		}
	}
	s.mu.Lock()
	for _, f := range s.facts {
		look(f)
	}
	for _, of := range s.states {
		for _, f := range of.known {
			look(f)
		}
	}
	s.mu.Unlock()
	for _, f := range missing {
		s.observe(f, true)
	}
	for _, f := range list {
		s.observe(f, false)
	}
}

// caller identifies a handler of a parent.
type caller struct {
	parent  types.UID
	handler string
}

// trigger calls the function of Follow: now, or after a delay.
func (s *store) trigger(of *state, delay time.Duration) {
	key := caller{of.owner.Parent.UID, of.owner.Handler}
	s.mu.Lock()
	call := s.calls[key]
	isPostponed := delay > 0 && of.waiting
	if delay > 0 {
		of.waiting = true
	}
	s.mu.Unlock()
	switch {
	case call == nil || isPostponed:
	case delay == 0:
		call()
	default:
		time.AfterFunc(delay, func() {
			s.mu.Lock()
			of.waiting = false
			call := s.calls[key]
			s.mu.Unlock()
			if call != nil {
				call()
			}
		})
	}
}

// patience is how often a child is restored at once within the window before the operator
// restores it less often.
const (
	patience = 5
	window   = time.Minute
)

// contentionRule is how the operator restores a child that another client keeps changing. Calls of
// the handler for other reasons restore it, too, so a contention outlasts the longest pause.
func contentionRule(delays []time.Duration) contention.Rule {
	longest := time.Duration(0)
	for _, delay := range delays {
		longest = max(longest, delay)
	}
	return contention.Rule{Patience: patience, Window: window, Delays: delays, Calm: window + longest}
}

// memory lets a call see and change the children of its owner. Its methods lock the store.
type memory struct {
	store  *store
	state  *state
	hashes []string
}

// begin begins a call of an owner. The memory must be ended.
func (s *store) begin(of claim, options *convergence.Options) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.states[of.hashes[0]]
	if own == nil {
		own = &state{owner: of.owner, known: map[Key]*fact{}}
		for _, hash := range of.hashes {
			s.states[hash] = own
		}
		uid := of.owner.Parent.UID
		s.owners[uid] = append(s.owners[uid], of.hashes...)
	}
	own.options = options
	for key, c := range own.contended {
		if c.IsOver(s.rule, time.Now()) {
			unset(&own.contended, key)
		}
	}
	own.running = &running{gone: map[Key]types.UID{}, seen: map[Key]string{}, strays: map[Key]struct{}{}}
	for key, known := range own.known {
		if cached := s.facts[key]; cached != nil && cached.version != known.version {
			own.running.seen[key] = cached.version
		}
	}
	return &memory{s, own, of.hashes}
}

// end ends a call that wanted some children. What has happened to the children meanwhile triggers another one.
func (m *memory) end(wanted map[Key]bool) {
	s := m.state
	m.store.mu.Lock()
	again := false
	delay := m.store.rule.Calm // longer than any pause
	for key, known := range s.known {
		changed := false
		if s.running.gone[key] == known.uid {
			s.lose(key, known.uid)
			changed = true
		} else if cached := m.store.facts[key]; cached != nil && cached.version != s.running.seen[key] {
			changed = s.compare(known, cached)
		}
		if changed {
			again = true
			delay = min(delay, s.contended[key].Left(m.store.rule, time.Now()))
		}
	}
	for key := range s.running.strays {
		if f := m.store.facts[key]; f != nil && !wanted[key] && s.isStray(f) {
			again = true
			delay = 0
		}
	}
	for _, uid := range s.running.gone {
		unset(&s.deleted, uid)
	}
	s.running = nil
	m.store.mu.Unlock()
	if again {
		m.store.trigger(s, delay)
	}
}

// view returns the latest version of a child, and the one that was judged last.
func (m *memory) view(key Key) view {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	known := m.state.known[key]
	live := m.store.facts[key]
	if known != nil && m.state.running.gone[key] == known.uid {
		m.state.lose(key, known.uid)
		known = nil
	}
	if live == nil || known != nil && live.isOlder(known) {
		live = known
	}
	return view{live: live, known: known}
}

// unresolved returns what was not dealt with yet for a child.
func (m *memory) unresolved(key Key) unresolved {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	mustAsk, isLost := m.state.lost[key]
	return unresolved{isLost, mustAsk, m.state.undecided[key]}
}

// judge keeps what the owner has judged, or what the server has answered.
func (m *memory) judge(f *fact) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	m.state.known[f.Key] = f.judged()
	unset(&m.state.lost, f.Key)
	unset(&m.state.unanswered, f.Key)
}

// doubt remembers that a child can exist, because its creation was not answered.
func (m *memory) doubt(key Key, r selector.Resource) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	set(&m.state.unanswered, key, r)
}

// unansweredCreations returns the children that can exist, because their creation was not answered.
func (m *memory) unansweredCreations() map[Key]selector.Resource {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	return maps.Clone(m.state.unanswered)
}

// answer forgets that a child can exist.
func (m *memory) answer(key Key) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	unset(&m.state.unanswered, key)
}

// expectDeletion remembers that the operator itself deletes a child.
func (m *memory) expectDeletion(uid types.UID) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	set(&m.state.deleted, uid, struct{}{})
}

// forgetDeletion takes that back.
func (m *memory) forgetDeletion(uid types.UID) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	unset(&m.state.deleted, uid)
}

// decideLoss remembers that a lost child must be created again.
func (m *memory) decideLoss(key Key) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	set(&m.state.lost, key, false)
}

// setUndecided remembers the fields about which a decision has failed. Without fields, all is decided.
func (m *memory) setUndecided(key Key, fields accepted) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	if len(fields) > 0 {
		set(&m.state.undecided, key, fields)
	} else {
		unset(&m.state.undecided, key)
	}
}

// countRestoration counts the restorations of a child. It reports whether another client has
// changed the child so often that this must be reported, once.
func (m *memory) countRestoration(key Key) (report bool) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	c := m.state.contended[key].Next(m.store.rule, time.Now())
	set(&m.state.contended, key, c)
	return c.Begins(m.store.rule)
}

// children returns the children of the owner, also those that the watch does not show yet. So there are no strays.
func (m *memory) children() map[Key]*fact {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	clear(m.state.running.strays)
	all := map[Key]*fact{}
	for _, hash := range m.hashes {
		for _, f := range m.store.byOwner[hash] {
			all[f.Key] = f
		}
	}
	for key, known := range m.state.known {
		cached := all[key]
		if (cached == nil || cached.isOlder(known)) && slices.Contains(m.hashes, known.owner) && m.state.running.gone[key] != known.uid {
			all[key] = known
		}
	}
	return all
}

// retain forgets the children that are not wanted anymore.
func (m *memory) retain(wanted map[Key]bool) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	for key := range m.state.known {
		if !wanted[key] {
			delete(m.state.known, key)
		}
	}
	for key := range m.state.undecided {
		if !wanted[key] {
			unset(&m.state.undecided, key)
		}
	}
	for key := range m.state.lost {
		if !wanted[key] {
			unset(&m.state.lost, key)
		}
	}
}
