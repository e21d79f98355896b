package reconcile

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// objectState is what the process remembers of one object between passes. There is
// one for every object that is watched: every field must be worth its bytes. It
// belongs to the pass.
type objectState struct {
	// initial: the object was there before this process handled anything. The watch
	// sets it, the passes read it.
	initial atomic.Bool
	// memos is what handlers keep in memory; nil: nothing yet. Indexing functions,
	// daemons and timers use it beside the passes.
	memos atomic.Pointer[memos]
	lifetime
}

// lifetime is the part that goes when the object is replaced by another one.
type lifetime struct {
	writes write.State
	// reconciledVersion is the version at which a pass found nothing left to do.
	reconciledVersion string
	// background has the daemons and timers; nil: there were none yet.
	background *background

	handled bool // a cycle was completed, or there was nothing to handle
	seen    bool // a pass of this process looked at the object
	// startedByPredecessor: an earlier process began the cycle.
	startedByPredecessor bool
	deleteEventHandled   bool // the event handlers were called for the deletion

	failures  int32 // of the framework or the API, consecutively
	notBefore time.Time
	reported  reportonce.Set
}

// resetFor forgets everything of an object that another one of its name has replaced.
func (s *objectState) resetFor(uid types.UID) {
	if s.writes.UID() == uid {
		s.writes.Reset(uid)
		return
	}
	if s.writes.UID() != "" {
		s.initial.Store(false)
	}
	s.background.stop(handler.StopDeleted)
	s.writes.Reset(uid)
	s.lifetime = lifetime{writes: s.writes}
}

// markGone ends everything that is done with the object.
func (s *objectState) markGone() {
	s.background.stop(handler.StopDeleted)
	s.writes.MarkGone()
	s.lifetime = lifetime{writes: s.writes, deleteEventHandled: s.deleteEventHandled}
}

// finishedHere begins the notes about handlers among what was reported.
const finishedHere = "\x00finished "

// noteFinished notes that this process finished a handler in a cycle that an earlier
// one began. (Such rare things have no field of their own.)
func (s *objectState) noteFinished(id string) { s.reported.First(finishedHere + id) }

func (s *objectState) wasFinished(id string) bool { return s.reported.Has(finishedHere + id) }

// memos are the values in memory of one object. An earlier object of the same name has
// its own, as long as they may be asked for: the watch is ahead of the event handlers,
// and the indexing functions are ahead of the passes.
type memos struct {
	uid    types.UID
	values *memo.Values
	former *memos
}

// memosOf returns the values of the object with this uid.
func (s *objectState) memosOf(uid types.UID, operator *memo.Values) *memo.Values {
	for {
		newest := s.memos.Load()
		for known := newest; known != nil; known = known.former {
			if known.uid == uid {
				return known.values
			}
		}
		made := &memos{uid, memo.NewValues(operator), newest}
		if s.memos.CompareAndSwap(newest, made) {
			return made.values
		}
	}
}

// dropMemos forgets the values of an object that is gone, and of those before it.
func (s *objectState) dropMemos(uid types.UID) {
	for {
		newest := s.memos.Load()
		if s.memos.CompareAndSwap(newest, newest.without(uid)) {
			return
		}
	}
}

// without returns what is left without the object and those before it.
func (m *memos) without(uid types.UID) *memos {
	if m == nil || m.uid == uid {
		return nil
	}
	return &memos{m.uid, m.values, m.former.without(uid)}
}

// objects are the states of all objects. It is safe for concurrent use.
type objects struct {
	mu     sync.Mutex
	states map[object.Key]*objectState
}

// of returns the state of an object, a new one if there is none.
func (o *objects) of(key object.Key) *objectState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.states == nil {
		o.states = map[object.Key]*objectState{}
	}
	known := o.states[key]
	if known == nil {
		known = &objectState{}
		o.states[key] = known
	}
	return known
}

// has reports whether there is a state of the object.
func (o *objects) has(key object.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.states[key] != nil
}

// in returns the objects of a stream that are remembered.
func (o *objects) in(stream object.StreamKey) []object.Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []object.Key
	for key := range o.states {
		if stream.Has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// delete forgets an object of which nothing is under way.
func (o *objects) delete(key object.Key) *objectState {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.states[key]
	delete(o.states, key)
	return known
}

// remove forgets an object, and stops its daemons and timers. No pass over it may be
// under way but the caller's.
func (o *objects) remove(key object.Key, reason handler.StopReason) *background {
	known := o.delete(key)
	if known == nil {
		return nil
	}
	known.background.stop(reason)
	known.writes.Drop()
	return known.background
}

// Memo returns what is kept in memory of an object, for those that are called beside
// the watches. An object that is not watched, or not known yet, has nothing that would
// last: its end would not be seen. It gets new values with every call, as an empty uid
// does.
func (e *Engine) Memo(resource selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values {
	r := e.resources.get(resource.String())
	if uid == "" || r == nil || !r.Has(name, uid) {
		return memo.NewValues(e.Memos)
	}
	key := object.Key{Resource: r.Name, NamespacedName: name}
	known := e.objects.has(key)
	values := e.objects.of(key).memosOf(uid, e.Memos)
	if !known && !r.Has(name, uid) {
		e.objects.delete(key) // its end has come in between, and was the last event of it
	}
	return values
}
