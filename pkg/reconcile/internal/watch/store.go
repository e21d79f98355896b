package watch

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// store holds the objects of a stream, and reports their changes, those of one object in order. Its
// reflector changes it; others can read it.
type store struct {
	observe func(event object.WatchEvent)
	// beginAnew is called for an object before a version of another history is observed: what is known
	// of its versions does not hold anymore.
	beginAnew func(now *object.Snapshot)
	// rewound is called before the changes in a list that belongs to another history than what the
	// store has. Interrupt is called for an event of another history: it makes the reflector list.
	rewound   func(list string)
	interrupt func()

	history relist.History
	// began is the version of the list with which another history began: it may have the versions
	// up to this one with other contents.
	began string

	mu      sync.RWMutex
	objects map[types.NamespacedName]*object.Snapshot
	done    chan struct{} // closed when all initial objects are known and observed
	listed  bool
}

var (
	_ cache.ReflectorStore         = (*store)(nil)
	_ cache.ReflectorBookmarkStore = (*store)(nil)
)

// Add is called for a new object.
func (s *store) Add(item any) error { return s.Update(item) }

// Update is called for a new version of an object.
func (s *store) Update(item any) error {
	now := snapshotOf(item)
	if now == nil {
		return nil
	}
	s.history.Advance(now.GetResourceVersion())
	before := s.put(now)
	if before != nil && isOlder(now, before) {
		s.interrupt()
	}
	s.report(before, now, watch.Added)
	return nil
}

// Delete is called with the last version of an object.
func (s *store) Delete(item any) error {
	last := snapshotOf(item)
	if last == nil {
		return nil
	}
	s.history.Advance(last.GetResourceVersion())
	s.mu.Lock()
	delete(s.objects, nameOf(last))
	s.mu.Unlock()
	s.observe(object.WatchEvent{Type: watch.Deleted, Snapshot: last})
	return nil
}

// Bookmark is called when there is nothing new up to a version.
func (s *store) Bookmark(version string) error {
	s.history.Advance(version)
	return nil
}

// Replace is called with a consistent list of all objects.
func (s *store) Replace(items []any, version string) error {
	before := s.objects
	after := make(map[types.NamespacedName]*object.Snapshot, len(items))
	another := s.history.Restart(version)
	for _, item := range items {
		if now := snapshotOf(item); now != nil {
			after[nameOf(now)] = now
			known := before[nameOf(now)]
			another = another || known != nil && isOlder(now, known)
		}
	}
	s.began = ""
	if another {
		s.began = version
		s.rewound(version)
	}
	s.mu.Lock()
	s.objects = after
	s.mu.Unlock()
	kind := watch.Added
	if !s.listed {
		kind = "" // from the initial list
	}
	for _, item := range items {
		if now := snapshotOf(item); now != nil {
			s.report(before[nameOf(now)], now, kind)
		}
	}
	for name, last := range before {
		if after[name] == nil { // the watch missed the deletion
			s.observe(object.WatchEvent{Type: watch.Deleted, Snapshot: last})
		}
	}
	if !s.listed {
		s.listed = true
		close(s.done)
	}
	return nil
}

// Resync does nothing.
func (s *store) Resync() error { return nil }

// put stores a version of an object, and returns the one before it.
func (s *store) put(now *object.Snapshot) (before *object.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(now)
	before = s.objects[name]
	s.objects[name] = now
	return before
}

// report reports the change from one version of an object to another one. The kind is that of an
// object without a version before.
func (s *store) report(before, now *object.Snapshot, kind watch.EventType) {
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
func (s *store) get(name types.NamespacedName) *object.Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[name]
}

// all returns all objects.
func (s *store) all() []*object.Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snapshots := make([]*object.Snapshot, 0, len(s.objects))
	for _, snapshot := range s.objects {
		snapshots = append(snapshots, snapshot)
	}
	return snapshots
}

func (s *store) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// snapshotOf returns an item of our sources, which is always a snapshot.
func snapshotOf(item any) *object.Snapshot {
	snapshot, _ := item.(*object.Snapshot)
	return snapshot
}

func nameOf(snapshot *object.Snapshot) types.NamespacedName {
	return types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}
}

func isOlder(snapshot, than *object.Snapshot) bool {
	return relist.IsOlder(snapshot.GetResourceVersion(), than.GetResourceVersion())
}
