package reconcile

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/reportonce"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/stop"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/heldobjects"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/revision"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/write"
)

// objectState is the state that the process keeps about one object between passes. Every
// watched object has one, so each field must be worth its memory. Passes own it.
type objectState struct {
	// initial is set if the object is older than the first work of this process. The
	// watch sets it, and passes read it.
	initial atomic.Bool
	// anew is set if the watch shows another history of the cluster. The next pass forgets what is
	// known of versions.
	anew atomic.Bool
	// memos contains the values of handlers in memory; nil if there are none.
	// Indexing functions, daemons, and timers use it concurrently with passes.
	memos atomic.Pointer[memos]
	lifetime
}

// lifetime is the part that is reset when another object replaces this one.
type lifetime struct {
	writes write.State
	// reconciledVersion is the version at which a pass found nothing left to do.
	reconciledVersion string
	// background contains the daemons and timers; nil if there were none.
	background *background

	handled bool // a cycle was completed, or there was nothing to handle
	seen    bool // a pass of this process looked at the object
	// startedByPredecessor is set if an earlier process began the cycle.
	startedByPredecessor bool
	deleteEventHandled   bool // the event handlers were called for the deletion
	// copied is set if the object had a record of its handling when this process saw it appear. It
	// was created from the manifest of another object, and what that has outside of it is not there.
	copied bool

	failures  uint16 // consecutive failures of the framework or the API
	notBefore time.Time
	reported  reportonce.Set
}

// resetFor resets the state for another object of the same name.
func (s *objectState) resetFor(uid types.UID) {
	if s.writes.UID() == uid {
		s.writes.Reset(uid)
		return
	}
	if s.writes.UID() != "" {
		s.initial.Store(false)
	}
	s.background.stop(stop.Deleted)
	s.writes.Reset(uid)
	s.lifetime = lifetime{writes: s.writes}
}

// reopen prepares the object for the work of this process after its start or a pause. Objects
// that are older than it were handled by another process or by none.
func (s *objectState) reopen() {
	s.initial.Store(true)
	s.reconciledVersion = "" // starts its daemons and timers
}

// markGone stops all work on the object.
func (s *objectState) markGone() {
	s.background.stop(stop.Deleted)
	s.writes.MarkGone()
	s.lifetime = lifetime{writes: s.writes, deleteEventHandled: s.deleteEventHandled}
}

// isReconciledAt reports whether a pass would find nothing to do at a version of the object,
// also for its daemons and timers.
func (s *objectState) isReconciledAt(version string) bool {
	s.background.refresh()
	s.writes.Add(s.background.takeEdits()...)
	return s.writes.IsReconciled(version, s.reconciledVersion) && !s.background.isRequeueRequested()
}

// finishedHere is the prefix of entries about finished handlers in the reported set.
const finishedHere = "\x00finished "

// markFinished records that this process finished a handler of a cycle that an earlier
// process began. This is too rare for a separate field.
func (s *objectState) markFinished(id string) { s.reported.First(finishedHere + id) }

func (s *objectState) wasFinished(id string) bool { return s.reported.Has(finishedHere + id) }

// memos contains the values of one object in memory. An earlier object of the same name
// keeps its own values while they may still be needed: event handlers can be behind the
// watch, and passes behind the indexing functions.
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

// dropMemos removes the values of an object that is gone, and of earlier objects.
func (s *objectState) dropMemos(uid types.UID) {
	for {
		newest := s.memos.Load()
		if s.memos.CompareAndSwap(newest, newest.without(uid)) {
			newest.from(uid).end()
			return
		}
	}
}

// without returns the memos without the object and earlier objects.
func (m *memos) without(uid types.UID) *memos {
	if m == nil || m.uid == uid {
		return nil
	}
	return &memos{m.uid, m.values, m.former.without(uid)}
}

// from returns the memos of the object and of earlier objects.
func (m *memos) from(uid types.UID) *memos {
	for m != nil && m.uid != uid {
		m = m.former
	}
	return m
}

// end tells the users of the values that they are not needed anymore. A daemon that still runs can read them.
func (m *memos) end() {
	for ; m != nil; m = m.former {
		m.values.End()
	}
}

// objects contains the states of all objects. It is safe for concurrent use.
type objects struct {
	mu     sync.Mutex
	states map[object.Key]*objectState
	// vanished are the objects that have vanished from their watches, in their last versions, until a pass has found
	// out what has become of them.
	vanished map[object.Key]*object.Snapshot
	held     heldobjects.Set
	changes  lastChanges
	// triggers has the calls for what happens to other objects.
	triggers triggers.Set
	// misfits summarizes the objects that do not fit the Go types of handlers.
	misfits heldobjects.Summary
	// revisions counts the objects of rollouts.
	revisions revision.Reviser
}

// of returns the state of an object, and creates it if necessary.
func (o *objects) of(key object.Key) *objectState {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.orNew(key)
}

// ofExisting is like of, but returns nil if the watch does not have the object. Otherwise, the event
// of its deletion is still to come, and removes the state.
func (o *objects) ofExisting(key object.Key, exists func() bool) *objectState {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !exists() {
		return nil
	}
	return o.orNew(key)
}

func (o *objects) orNew(key object.Key) *objectState {
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

// has reports whether the object has a state.
func (o *objects) has(key object.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.states[key] != nil
}

// in returns the objects of a stream that have a state.
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

// remove removes the state of an object, and stops its daemons and timers. No other pass
// over the object can be running.
func (o *objects) remove(key object.Key, reason stop.Reason) *background {
	o.triggers.Forget(key)
	o.changes.forget(key)
	o.mu.Lock()
	known := o.states[key]
	delete(o.states, key)
	o.held.Forget(key)
	o.mu.Unlock()
	o.revisions.Forget(key) // without the lock, because another object may begin
	if known == nil {
		return nil
	}
	known.background.stop(reason)
	known.writes.Drop(handler.ErrGone)
	known.memos.Load().end()
	return known.background
}

// recordMisfit records that a handler of events or of an index skips an object, or that it does
// not anymore: nil. Many objects share one line of the log.
func (o *objects) recordMisfit(key object.Key, d *handler.Declaration, err *handler.MisfitError) {
	of := heldobjects.Finding{Reason: metrics.Misfit, By: d.ID}
	problems := map[string]string(nil)
	if err != nil {
		problems = map[string]string{d.ID: err.Error()}
	}
	if fresh := o.held.Replace(key, of, problems); len(fresh) > 0 {
		o.misfits.Add(groupOf(key, err), key, d.ID)
	}
}

// groupOf returns the misfits that are summarized together.
func groupOf(key object.Key, err *handler.MisfitError) heldobjects.Group {
	return heldobjects.Group{Resource: key.Resource, Type: err.Type, Field: err.Field}
}

// Memo returns the values of an object in memory, for callers outside the watches. An
// object that is not watched or not known yet cannot keep values, because its deletion
// would not be noticed: it gets new values with every call. The same applies to an empty
// uid.
func (e *Engine) Memo(resource selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values {
	r := e.resources.get(resource.String())
	if r == nil {
		return memo.NewValues(e.Memos)
	}
	key := object.Key{Resource: r.Name, NamespacedName: name}
	known := e.objects.ofExisting(key, func() bool { return r.Has(name, uid) })
	if known == nil {
		return memo.NewValues(e.Memos)
	}
	return known.memosOf(uid, e.Memos)
}
