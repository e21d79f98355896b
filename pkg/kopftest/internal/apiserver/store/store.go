package store

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// The errors of a store.
var (
	// ErrChanged says that the object is not the one that was read anymore.
	ErrChanged = errors.New("the object has been modified")
	// ErrExpired says that the events after a version are forgotten.
	ErrExpired = errors.New("the version is too old")
	// ErrFuture says that a version does not exist yet.
	ErrFuture = errors.New("the version does not exist yet")
)

// Event is one write.
type Event struct {
	Type    watch.EventType
	Version uint64
	// Object is the state after the write. For a deletion, it is the last state, with the
	// version of the deletion.
	Object *unstructured.Unstructured
	// Before is the state before the write, or nil for a creation.
	Before *unstructured.Unstructured
}

// Store contains objects by resource, namespace, and name. It is safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	version   uint64
	compacted uint64 // events up to this version are forgotten
	shelves   map[schema.GroupResource]*shelf
}

// shelf contains the objects of one resource.
type shelf struct {
	objects map[types.NamespacedName]*unstructured.Unstructured
	log     []Event
	changed chan struct{} // closed by the next event
}

// New returns an empty store. Its first version is 1, because clients take 0 for any version.
func New() *Store {
	return &Store{version: 1, shelves: map[schema.GroupResource]*shelf{}}
}

// shelf returns the shelf of a resource. The caller holds the lock.
func (s *Store) shelf(of schema.GroupResource) *shelf {
	if s.shelves[of] == nil {
		s.shelves[of] = &shelf{objects: map[types.NamespacedName]*unstructured.Unstructured{}, changed: make(chan struct{})}
	}
	return s.shelves[of]
}

// Version returns the version of the last write.
func (s *Store) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Get returns an object, or nil. The caller must not modify it.
func (s *Store) Get(of schema.GroupResource, key types.NamespacedName) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shelf(of).objects[key]
}

// Commit stores a new state of the object that the caller has read, and returns it with its
// version. The caller must not modify the state anymore. Without a state before, it creates the
// object; without a state after, it deletes the object, and returns its last state with the version
// of the deletion. It returns ErrChanged if the stored object is not the one before.
func (s *Store) Commit(of schema.GroupResource, key types.NamespacedName, before, after *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.shelf(of)
	if on.objects[key] != before {
		return nil, ErrChanged
	}
	s.version++
	event := Event{Type: watch.Modified, Version: s.version, Object: after, Before: before}
	switch {
	case before == nil:
		event.Type = watch.Added
	case after == nil:
		event.Type = watch.Deleted
		event.Object = before
	}
	event.Object = WithVersion(event.Object, s.version)
	if event.Type == watch.Deleted {
		delete(on.objects, key)
	} else {
		on.objects[key] = event.Object
	}
	on.log = append(on.log, event)
	close(on.changed)
	on.changed = make(chan struct{})
	return event.Object, nil
}

// WithVersion returns an object in a version. It shares everything but the metadata.
func WithVersion(object *unstructured.Unstructured, version uint64) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = strconv.FormatUint(version, 10)
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// List returns the objects of a resource at a version, sorted by namespace and name, and the
// version. Version 0 is the current one.
func (s *Store) List(of schema.GroupResource, at uint64) ([]*unstructured.Unstructured, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == 0 {
		at = s.version
	}
	if err := s.check(at); err != nil {
		return nil, 0, err
	}
	found := s.shelf(of).at(at)
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return strings.Compare(Position(a), Position(b)) })
	return found, at, nil
}

// All returns the objects of some resources, in any order. The caller must not modify them.
func (s *Store) All(isWanted func(schema.GroupResource) bool) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*unstructured.Unstructured
	for of, on := range s.shelves {
		if isWanted(of) {
			found = slices.AppendSeq(found, maps.Values(on.objects))
		}
	}
	return found
}

// Position returns the place of an object in lists.
func Position(of *unstructured.Unstructured) string { return of.GetNamespace() + "/" + of.GetName() }

// at returns the objects of a former version, by undoing the writes since.
func (on *shelf) at(version uint64) []*unstructured.Unstructured {
	objects := make(map[string]*unstructured.Unstructured, len(on.objects))
	for _, object := range on.objects {
		objects[Position(object)] = object
	}
	for _, event := range slices.Backward(on.log) {
		switch {
		case event.Version <= version:
			return values(objects)
		case event.Before == nil:
			delete(objects, Position(event.Object))
		default:
			objects[Position(event.Before)] = event.Before
		}
	}
	return values(objects)
}

func values(objects map[string]*unstructured.Unstructured) []*unstructured.Unstructured {
	found := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		found = append(found, object)
	}
	return found
}

// check returns an error if a version is not known. The caller holds the lock.
func (s *Store) check(version uint64) error {
	switch {
	case version > s.version:
		return ErrFuture
	case version < s.compacted:
		return ErrExpired
	default:
		return nil
	}
}

// Since returns the events of a resource after a version, and a channel that is closed by
// the next event.
func (s *Store) Since(of schema.GroupResource, version uint64) ([]Event, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.shelf(of)
	if err := s.check(version); err != nil {
		return nil, on.changed, err
	}
	first, _ := slices.BinarySearchFunc(on.log, version+1, func(e Event, v uint64) int { return int(int64(e.Version) - int64(v)) })
	return slices.Clone(on.log[first:]), on.changed, nil
}

// Compact forgets all events until now, as etcd does after some minutes.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.version
	for _, on := range s.shelves {
		on.log = nil
	}
}
