package triggers

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Parent is an object with a handler of children.
type Parent struct {
	Link      Link
	Namespace string
	// Enqueue requests a pass over the parent. It is called while the index is locked, so it
	// must not call the index.
	Enqueue func()
}

// Following is the trigger of one handler of children for one parent: it has a call for each
// child that has changed since its last successful call. The first call is about all children.
//
// Only pending calls take memory: they keep the version of the child that the handler knows.
type Following struct {
	children *Children
	handler  *handler.Declaration
	parent   Parent

	mu sync.Mutex
	// all is the state of the call about all children. While it is pending, no other calls
	// are: it will see their children.
	all callState
	// pending are the calls about one child, and offered those of the current pass, by their
	// ids. count is the number of all calls so far.
	pending map[types.UID]*childCall
	offered map[string]*childCall
	count   uint64
}

var (
	_ Trigger  = (*Following)(nil)
	_ Follower = (*Following)(nil)
)

// NewFollowing returns a trigger that follows the children of a parent. If isKnown is set, the handler may know the
// parent from an earlier process: it is called about all children, even if there are none.
// Otherwise, the children that exist already are new to it.
func (c *Children) NewFollowing(d *handler.Declaration, parent Parent, isKnown bool) *Following {
	f := &Following{children: c, handler: d, parent: parent}
	if isKnown {
		f.all = waiting
	}
	c.Follow(parent.Link, f, func(children []Child) {
		for _, child := range children {
			if f.selects(child) {
				f.record(Event{Change: Created, Link: parent.Link, Child: child})
			}
		}
	})
	return f
}

// selects reports whether the handler is for the child.
func (f *Following) selects(child Child) bool {
	return slices.Contains(child.Kind.Selectors, f.handler.Children)
}

// Observe implements Follower.
func (f *Following) Observe(event Event) {
	if !f.selects(event.Child) {
		return
	}
	if f.record(event) {
		f.parent.Enqueue()
	}
}

// record records a change of a child. It reports whether a pass must be made: it need not if the
// handler waits already, maybe for its next attempt.
func (f *Following) record(event Event) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == waiting {
		return false
	}
	uid := event.Child.Snapshot.GetUID()
	call, known := f.pending[uid]
	if !known {
		call = f.newCall(event)
		f.pending[uid] = call
	}
	call.now = state{event.Child.Snapshot, event.Change.IsGone(), event.Change == Arrived || event.Change == Left}
	call.again = true
	if call.isUnknown() {
		f.remove(call)
		return false
	}
	return !known || call.status == running
}

func (f *Following) newCall(event Event) *childCall {
	if f.pending == nil {
		f.pending = map[types.UID]*childCall{}
	}
	f.count++
	// People see the id: "pods/name", or "pods/namespace/name" in another namespace than the parent's.
	id := event.Child.Kind.Plural + "/"
	child := event.Child.Snapshot
	if child.GetNamespace() != f.parent.Namespace {
		id += child.GetNamespace() + "/"
	}
	call := &childCall{id: id + child.GetName(), uid: child.GetUID(), order: f.count}
	if event.Change != Arrived {
		call.former = event.Before
	}
	return call
}

func (f *Following) remove(call *childCall) {
	delete(f.pending, call.uid)
	if len(f.pending) == 0 {
		f.pending = nil
	}
}

// IsPending implements Trigger.
func (f *Following) IsPending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all != notNeeded || len(f.pending) > 0
}

// Calls implements Trigger. Two children that had the same name one after another
// have their calls one after another.
func (f *Following) Calls() []*handler.Declaration {
	f.mu.Lock()
	if f.all != notNeeded {
		f.all = waiting // also after it was interrupted
		f.pending = nil
		f.mu.Unlock()
		return []*handler.Declaration{handler.ForCall(f.handler, "", f.allChildren)}
	}
	f.mu.Unlock()
	f.dropUnchanged()

	f.mu.Lock()
	defer f.mu.Unlock()
	f.offered = map[string]*childCall{}
	byOrder := slices.SortedFunc(maps.Values(f.pending), func(a, b *childCall) int { return cmp.Compare(a.order, b.order) })
	var calls []*handler.Declaration
	for _, call := range byOrder {
		d := handler.ForCall(f.handler, call.id, func() handler.ChildCall {
			f.mu.Lock()
			defer f.mu.Unlock()
			return call.about(f.current)
		})
		if f.offered[d.ID] == nil {
			f.offered[d.ID] = call
			call.status = waiting
			calls = append(calls, d)
		}
	}
	return calls
}

// dropUnchanged drops the calls about children that are as they were. It compares them without
// the lock, so that the watches need not wait.
func (f *Following) dropUnchanged() {
	f.mu.Lock()
	compared := map[*childCall]state{}
	for _, call := range f.pending {
		// A call must be made anyway if it is about a new child or one that is gone, or was tried.
		canDrop := call.former != nil && !call.now.gone && !call.tried
		if canDrop && call.differs != call.now.snapshot {
			compared[call] = call.now
		}
	}
	f.mu.Unlock()
	for call, now := range compared {
		differs := !object.Equal(handler.StateOfChild(call.former), handler.StateOfChild(now.snapshot))
		f.mu.Lock()
		switch {
		case differs:
			call.differs = now.snapshot
		case call.now == now:
			f.remove(call)
		}
		f.mu.Unlock()
	}
}

// Begin implements Trigger. The call about all children begins in allChildren.
func (f *Following) Begin(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := f.offered[id]
	if call != nil {
		call.begin()
	}
}

// End implements Trigger. The call of another child of the same name follows.
func (f *Following) End(id string, again bool) {
	if f.end(id, again) {
		f.parent.Enqueue()
	}
}

// end reports whether another pass must be made.
func (f *Following) end(id string, again bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == f.handler.ID {
		f.all = notNeeded
		if again {
			f.all = waiting
		}
		return false
	}
	call := f.offered[id]
	delete(f.offered, id)
	switch {
	case again:
		call.status = waiting
	case !call.again:
		f.remove(call)
	default: // something has happened since it began
		call.succeed()
		if call.isUnknown() {
			f.remove(call)
		}
	}
	if len(f.offered) == 0 {
		f.offered = nil
	}
	return !again && f.hasNamesake(call)
}

// hasNamesake reports whether a call of another child of the same name is pending.
func (f *Following) hasNamesake(call *childCall) bool {
	for _, other := range f.pending {
		if other != call && other.id == call.id {
			return true
		}
	}
	return false
}

// Stop implements Trigger.
func (f *Following) Stop() { f.children.Unfollow(f.parent.Link, f) }

// allChildren begins the call about all children: changes from now on lead to other calls.
func (f *Following) allChildren() handler.ChildCall {
	var found []*object.Snapshot
	f.children.View(f.parent.Link, func(children []Child) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = running
		found = f.snapshots(children)
	})
	return handler.ChildCall{Reason: cause.Resume, Children: func() []*object.Snapshot { return found }}
}

// current returns the current children that the handler is for.
func (f *Following) current() []*object.Snapshot { return f.snapshots(f.children.Of(f.parent.Link)) }

// snapshots returns the children that the handler is for.
func (f *Following) snapshots(children []Child) []*object.Snapshot {
	var found []*object.Snapshot
	for _, child := range children {
		if f.selects(child) {
			found = append(found, child.Snapshot)
		}
	}
	return found
}

// callState is the state of a call.
type callState int

const (
	notNeeded callState = iota
	waiting
	running
)

// childCall is a pending call about one child.
type childCall struct {
	id    string // below that of the handler
	uid   types.UID
	order uint64

	former *object.Snapshot // of the last successful call; nil if there is none
	now    state
	taken  state // what a running call is about
	status callState
	// again is set if something has happened since the call began, and tried if there was an
	// attempt, which may have had effects.
	again, tried bool
	// differs is the latest version that is known to differ from the former one.
	differs *object.Snapshot
}

// state is the latest version of a child, and whether the parent still has it.
type state struct {
	snapshot    *object.Snapshot
	gone, moved bool
}

// about returns what a running call is about. The function returns the current children.
func (c *childCall) about(children func() []*object.Snapshot) handler.ChildCall {
	of := handler.ChildCall{Reason: cause.Update, Child: c.taken.snapshot, Former: c.former, Children: children}
	switch {
	case c.taken.gone:
		of.Reason = cause.Delete
		of.Moved = c.taken.moved
	case c.former == nil:
		of.Reason = cause.Create
		of.Moved = c.taken.moved
	}
	return of
}

// isUnknown reports whether the handler has never heard of the child, which is gone.
func (c *childCall) isUnknown() bool {
	return c.now.gone && c.former == nil && !c.tried
}

// begin marks the call as running.
func (c *childCall) begin() {
	c.taken = c.now
	c.status = running
	c.again = false
	c.tried = true
}

// succeed marks the call as successful, so that the next one begins where it ended.
func (c *childCall) succeed() {
	c.former = c.taken.snapshot
	c.status = waiting
	c.tried = false
	if c.taken.gone {
		c.former = nil
	}
}
