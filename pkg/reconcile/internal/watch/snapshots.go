package watch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// snapshots has the handled objects of a stream, and reports their changes, those of one object in
// order. The stream changes it; others can read it.
type snapshots struct {
	observe func(event object.WatchEvent)
	// beginAnew is called for an object before a version of another history is observed: what is known
	// of its versions does not hold anymore.
	beginAnew func(now *object.Snapshot)
	// began is the version of the list with which another history began: it may have the versions
	// up to this one with other contents.
	began  string
	listed bool

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
	s.mu.Lock()
	before := s.objects[name]
	s.objects[name] = now
	s.mu.Unlock()
	s.report(before, now, watch.Added)
}

func (s *snapshots) remove(last *object.Snapshot) {
	s.mu.Lock()
	delete(s.objects, nameOf(last))
	s.mu.Unlock()
	s.observe(object.WatchEvent{Type: watch.Deleted, Snapshot: last})
}

func (s *snapshots) replace(all []*object.Snapshot, version string, another bool) {
	before := s.objects
	after := make(map[types.NamespacedName]*object.Snapshot, len(all))
	for _, now := range all {
		after[nameOf(now)] = now
	}
	s.began = ""
	if another {
		s.began = version
	}
	s.mu.Lock()
	s.objects = after
	s.mu.Unlock()
	kind := watch.Added
	if !s.listed {
		kind = "" // from the initial list
	}
	for _, now := range all {
		s.report(before[nameOf(now)], now, kind)
	}
	for name, last := range before {
		if after[name] == nil { // the watch missed the deletion
			s.observe(object.WatchEvent{Type: watch.Deleted, Snapshot: last})
		}
	}
	s.listed = true
}

// report reports the change from one version of an object to another one. The kind is that of an
// object without a version before.
func (s *snapshots) report(before, now *object.Snapshot, kind watch.EventType) {
	anew := s.began != "" && !relist.IsOlder(s.began, now.GetResourceVersion()) || before != nil && isOlder(now, before)
	if anew {
		s.beginAnew(now)
	}
	switch {
	case before == nil:
	case before.GetUID() != now.GetUID(): // deleted and created again while the watch was interrupted
		s.observe(object.WatchEvent{Type: watch.Deleted, Snapshot: before})
		kind = watch.Added
	case before.GetResourceVersion() != now.GetResourceVersion() || anew && !object.Equal(before.Body().Raw(), now.Body().Raw()):
		kind = watch.Modified
	default:
		return // only listed again
	}
	s.observe(object.WatchEvent{Type: kind, Snapshot: now})
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
