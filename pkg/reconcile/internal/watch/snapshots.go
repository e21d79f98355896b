package watch

import (
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// snapshots has the handled objects of a stream, and reports their changes, those of one object in
// order. The stream changes it; others can read it.
type snapshots struct {
	// index is called for an event before the version can be read, and observe after that.
	index, observe func(event object.WatchEvent)
	// beginAnew is called for an object before a version of another history is observed: what is known
	// of its versions does not hold anymore.
	beginAnew func(now *object.Snapshot)
	// began is the version of the list with which another history began: it may have the versions
	// up to this one with other contents.
	began  string
	listed bool
	// relisted is set from outside when the API server may show other contents in the same versions. The next
	// list is compared with what is known, and closes the channel.
	relisted atomic.Pointer[chan struct{}]
	compares bool // in that list
	// share is which objects are shown. Nil: all.
	share *kube.Share
	// narrowed is set if the watch has selectors. An object that it does not show anymore can still exist.
	narrowed bool

	mu      sync.RWMutex
	objects map[types.NamespacedName]*object.Snapshot
}

var _ store[*object.Snapshot] = (*snapshots)(nil)

func (s *snapshots) hasNewer(than *object.Snapshot) bool {
	known := s.objects[nameOf(than)]
	return known != nil && isOlder(than, known)
}

func (s *snapshots) put(now *object.Snapshot) {
	name := nameOf(now)
	change := s.change(s.objects[name], now, watch.Added)
	change.tell(s.index)
	s.mu.Lock()
	s.objects[name] = now
	s.mu.Unlock()
	s.report(change)
}

func (s *snapshots) remove(last *object.Snapshot) {
	s.mu.Lock()
	delete(s.objects, nameOf(last))
	s.mu.Unlock()
	s.forget(last)
}

func (s *snapshots) replace(all []*object.Snapshot, version string, another bool) {
	before := s.objects
	relisted := s.relisted.Swap(nil)
	s.compares = relisted != nil
	if relisted != nil {
		defer close(*relisted)
	}
	s.began = ""
	if another {
		s.began = version
	}
	kind := watch.Added
	if !s.listed {
		kind = "" // from the initial list
	}
	after := make(map[types.NamespacedName]*object.Snapshot, len(all))
	for _, now := range all {
		name := nameOf(now)
		after[name] = now
		s.change(before[name], now, kind).tell(s.index)
	}
	s.mu.Lock()
	s.objects = after
	s.mu.Unlock()
	for _, now := range all {
		s.report(s.change(before[nameOf(now)], now, kind)) // computed again, because there can be very many
	}
	for name, last := range before {
		if after[name] == nil && s.share.Has(last.GetNamespace(), last.GetUID()) { // the watch missed its end
			s.forget(last)
		}
	}
	s.listed = true
	s.compares = false
}

// leave forgets the objects that belong to others now, and reports nothing.
func (s *snapshots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(_ types.NamespacedName, one *object.Snapshot) bool {
		return !s.share.Has(one.GetNamespace(), one.GetUID())
	})
}

// forget reports that an object does not exist anymore, or that it may not.
func (s *snapshots) forget(last *object.Snapshot) {
	gone := object.WatchEvent{Type: watch.Deleted, Snapshot: last}
	if s.narrowed {
		gone.Type = object.Vanished
	}
	s.index(gone)
	s.observe(gone)
}

// change says what one version of an object means.
type change struct {
	now     *object.Snapshot
	deleted *object.Snapshot // another object of the name that was there before, or nil
	kind    watch.EventType
	changed bool // false if the version is only listed again
	anew    bool // the version belongs to another history than the one before
}

// change compares a version of an object with the one before. The kind is that of an object that was
// not there before.
func (s *snapshots) change(before, now *object.Snapshot, kind watch.EventType) change {
	c := change{now: now, kind: kind, changed: true}
	c.anew = s.began != "" && !relist.IsOlder(s.began, now.GetResourceVersion()) || before != nil && isOlder(now, before)
	switch {
	case before == nil:
	case before.GetUID() != now.GetUID(): // deleted and created again while the watch was interrupted
		c.deleted = before
	default:
		c.kind = watch.Modified
		c.changed = before.GetResourceVersion() != now.GetResourceVersion() || (c.anew || s.compares) && !object.Equal(before.Body().Raw(), now.Body().Raw())
	}
	return c
}

// tell calls a function with the events of a change.
func (c change) tell(to func(event object.WatchEvent)) {
	if !c.changed {
		return
	}
	if c.deleted != nil {
		to(object.WatchEvent{Type: watch.Deleted, Snapshot: c.deleted})
	}
	to(object.WatchEvent{Type: c.kind, Snapshot: c.now})
}

// report reports a change after its version can be read.
func (s *snapshots) report(c change) {
	if c.anew {
		s.beginAnew(c.now)
	}
	c.tell(s.observe)
}

// get returns an object, or nil if it does not exist.
func (s *snapshots) get(name types.NamespacedName) *object.Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[name]
}

// all returns all objects.
func (s *snapshots) all() []*object.Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := make([]*object.Snapshot, 0, len(s.objects))
	for _, snapshot := range s.objects {
		found = append(found, snapshot)
	}
	return found
}

func (s *snapshots) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

func nameOf(snapshot *object.Snapshot) types.NamespacedName {
	return types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}
}

func isOlder(snapshot, than *object.Snapshot) bool {
	return relist.IsOlder(snapshot.GetResourceVersion(), than.GetResourceVersion())
}
