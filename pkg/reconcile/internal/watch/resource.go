package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// Resource is a watched resource with the objects from its streams. It is safe for concurrent
// use.
type Resource struct {
	selector.Resource
	Name string // as in object keys
	API  *kube.Client
	// Selection is which of the objects are watched.
	Selection kube.Selection
	// FillsIndices makes handlers wait until the objects are in the indices.
	FillsIndices bool
	// IsWhole makes the streams show the objects of all shards.
	IsWhole bool

	selectors  []selector.Selector // that have found it
	unserved   []selector.Selector // that have found other versions of it
	streams    streams             // none if it is no longer watched
	redefined  atomic.Bool         // a write has shown that Status is no longer true
	rediscover signal              // nil: it was not discovered
}

// NewResource returns a resource that is not watched yet.
func NewResource(found discovery.SelectedResource, api *kube.Client) *Resource {
	return &Resource{Resource: found.Resource, Name: found.String(), API: api, Selection: api.Selection(), selectors: found.Selectors, unserved: unservedOf(found)}
}

// unservedOf returns the selectors of other versions, whose handlers are not called.
func unservedOf(found discovery.SelectedResource) (selectors []selector.Selector) {
	for _, version := range found.Unserved {
		selectors = append(selectors, version.Selectors...)
	}
	return selectors
}

// Unserved returns the selectors of other versions, whose handlers are not called.
func (r *Resource) Unserved() []selector.Selector { return r.unserved }

// isSame reports whether the resource can stay unchanged: other changes of its definition do
// not affect its objects and handlers.
func (r *Resource) isSame(found discovery.SelectedResource) bool {
	return r.Kind == found.Kind && r.Status == found.Status && r.Namespaced == found.Namespaced &&
		areSame(r.selectors, found.Selectors) && areSame(r.unserved, unservedOf(found))
}

// areSame reports whether the selectors are the same, in any order.
func areSame(a, b []selector.Selector) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(sel selector.Selector) bool { return !slices.Contains(b, sel) })
}

// HasStatusSubresource reports whether the status is written separately.
func (r *Resource) HasStatusSubresource() bool { return r.Status != r.redefined.Load() }

// SetStatusSubresource changes that after a write has shown it, until discovery decides.
func (r *Resource) SetStatusSubresource(has bool) {
	r.redefined.Store(has != r.Status)
	r.rediscover.send()
}

// Key returns the key of an object of this resource.
func (r *Resource) Key(snapshot *object.Snapshot) object.Key {
	return object.Key{Resource: r.Name, NamespacedName: types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}}
}

// Add adds a stream.
func (r *Resource) Add(s *Stream) { r.streams.put(s) }

// Interrupt lets all streams list the objects again, because something else has shown that the
// cluster has another history than what they have shown. It does not wait.
func (r *Resource) Interrupt() {
	for _, s := range r.streams.all() {
		s.interrupt()
	}
}

// IsWatched reports whether a stream watches the namespace.
func (r *Resource) IsWatched(namespace string) bool { return r.streams.of(namespace) != nil }

// Cached returns the latest version of the object from the watch, or nil if it does not exist.
func (r *Resource) Cached(name types.NamespacedName) *object.Snapshot {
	s := r.streams.of(name.Namespace)
	if s == nil {
		return nil
	}
	return s.kept.get(name)
}

// Has reports whether the watch has this object with its uid.
func (r *Resource) Has(name types.NamespacedName, uid types.UID) bool {
	snapshot := r.Cached(name)
	return snapshot != nil && snapshot.GetUID() == uid
}

// Objects returns all objects from the streams.
func (r *Resource) Objects() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, s := range r.streams.all() {
		snapshots = append(snapshots, s.kept.all()...)
	}
	return snapshots
}

// Size returns the number of objects in the streams.
func (r *Resource) Size() (number int) {
	for _, s := range r.streams.all() {
		number += s.kept.size()
	}
	return number
}

// Version is the version of an object from the watch, and its current version.
type Version struct {
	Key  object.Key
	Seen *object.Snapshot // nil if the watch has not shown it
	Now  kube.Version     // empty if it no longer exists
}

// UID returns that of the object now, or, if it no longer exists, as the watch has shown it.
func (v Version) UID() types.UID {
	if v.Now.UID == "" && v.Seen != nil {
		return v.Seen.GetUID()
	}
	return v.Now.UID
}

// Versions lists all objects again, without their content, because a watch can be late or
// stuck. It skips stopped streams; streams that start later list the current objects anyway.
func (r *Resource) Versions(ctx context.Context) ([]Version, error) {
	var all []Version
	for _, s := range r.streams.all() {
		seen := s.kept.all() // before listing: objects missing from the list are then deleted, not new
		now, err := r.API.ListVersions(ctx, s.namespace, s.share)
		switch {
		case err != nil && s.hasNothing(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s cannot be listed: %w", r.Name, err)
		}
		for _, snapshot := range seen {
			key := r.Key(snapshot)
			all = append(all, Version{Key: key, Seen: snapshot, Now: now[key.NamespacedName]})
			delete(now, key.NamespacedName)
		}
		for name, version := range now {
			all = append(all, Version{Key: object.Key{Resource: r.Name, NamespacedName: name}, Now: version})
		}
	}
	return all, nil
}

// Stream is a watch of handled objects.
type Stream = stream[*object.Snapshot, *snapshots]

// NewStream returns a stream that passes the events of a resource to a consumer. No reflector feeds it.
func NewStream(ctx context.Context, r *Resource, namespace string, c Consumer) *Stream {
	return newResourceStream(ctx, r, namespace, nil, c)
}

func newResourceStream(ctx context.Context, r *Resource, namespace string, share *kube.Share, c Consumer) *Stream {
	kept := &snapshots{
		share:     share,
		narrowed:  !r.Selection.IsEmpty(),
		index:     func(event object.WatchEvent) { c.Index(ctx, r, event) },
		observe:   func(event object.WatchEvent) { c.Observe(ctx, r, event) },
		beginAnew: func(now *object.Snapshot) { c.BeginAnew(r, r.Key(now)) },
		objects:   map[types.NamespacedName]*object.Snapshot{},
	}
	if share != nil {
		share.Left = kept.leave
	}
	return newStream(namespace, share, kept)
}

// streams contains the streams of one resource. One goroutine changes them; others can read
// them without waiting.
type streams struct {
	current atomic.Pointer[map[string]*Stream]
}

// all returns the streams by namespace. Do not modify the map.
func (s *streams) all() map[string]*Stream {
	current := s.current.Load()
	if current == nil {
		return nil
	}
	return *current
}

// of returns the stream with the objects of a namespace, or nil if there is none.
func (s *streams) of(namespace string) *Stream {
	all := s.all()
	cluster := all[metav1.NamespaceAll]
	if cluster != nil {
		return cluster
	}
	return all[namespace]
}

func (s *streams) put(added *Stream) {
	changed := maps.Clone(s.all())
	if changed == nil {
		changed = map[string]*Stream{}
	}
	changed[added.namespace] = added
	s.current.Store(&changed)
}

func (s *streams) remove(namespace string) {
	changed := maps.Clone(s.all())
	delete(changed, namespace)
	s.current.Store(&changed)
}
