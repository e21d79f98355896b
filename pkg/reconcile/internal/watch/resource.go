package watch

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

// Resource is a resource that is watched, with the objects that the streams have
// shown. It is safe for concurrent use.
type Resource struct {
	selector.Resource
	Name string // as object keys have it
	API  *kube.Client
	// FillsIndices: handlers wait until the objects are in the indices.
	FillsIndices bool

	selectors []selector.Selector // that have found it
	streams   streams             // none: it is not watched anymore
}

// NewResource makes a resource, which is not watched yet.
func NewResource(found discovery.SelectedResource, api *kube.Client) *Resource {
	return &Resource{Resource: found.Resource, Name: found.String(), API: api, selectors: found.Selectors}
}

// isSame reports whether the resource can stay as it is: whatever else has changed in
// its definition makes no difference to its objects and its handlers.
func (r *Resource) isSame(found discovery.SelectedResource) bool {
	return r.Kind == found.Kind && r.Status == found.Status && r.Namespaced == found.Namespaced &&
		len(r.selectors) == len(found.Selectors) &&
		!slices.ContainsFunc(r.selectors, func(sel selector.Selector) bool { return !slices.Contains(found.Selectors, sel) })
}

// Key returns the key of an object of this resource.
func (r *Resource) Key(snapshot *object.Snapshot) object.Key {
	return object.Key{Resource: r.Name, NamespacedName: types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}}
}

// Add adds a stream.
func (r *Resource) Add(s *Stream) { r.streams.put(s) }

// IsWatched reports whether a stream shows the objects of the namespace.
func (r *Resource) IsWatched(namespace string) bool { return r.streams.of(namespace) != nil }

// Cached returns the object as the watch has last shown it; nil if it is not there.
func (r *Resource) Cached(name types.NamespacedName) *object.Snapshot {
	s := r.streams.of(name.Namespace)
	if s == nil {
		return nil
	}
	return s.cached(name)
}

// Has reports whether the watch shows this very object.
func (r *Resource) Has(name types.NamespacedName, uid types.UID) bool {
	snapshot := r.Cached(name)
	return snapshot != nil && snapshot.GetUID() == uid
}

// Objects returns all objects that the streams have shown.
func (r *Resource) Objects() []*object.Snapshot {
	var snapshots []*object.Snapshot
	for _, s := range r.streams.all() {
		snapshots = append(snapshots, s.objects()...)
	}
	return snapshots
}

// Statuses returns the state of each stream.
func (r *Resource) Statuses() []Status {
	var all []Status
	for _, s := range r.streams.all() {
		all = append(all, Status{Resource: r.Name, Namespace: s.namespace, Listed: s.listening.HasSynced(), Err: s.lastError()})
	}
	return all
}

// Version is an object as the watch has shown it, and as it is now.
type Version struct {
	Key  object.Key
	Seen *object.Snapshot // nil: the watch has not shown it
	Now  kube.Version     // empty: it does not exist anymore
}

// Versions lists all objects once more, without their content: a watch can be late, or
// stuck. A stream that was stopped has none; one that is started later lists what
// there is then.
func (r *Resource) Versions(ctx context.Context) ([]Version, error) {
	var all []Version
	for _, s := range r.streams.all() {
		seen := s.objects() // before the list: what is not in that is gone, and not new
		now, err := r.API.ListVersions(ctx, s.namespace)
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
