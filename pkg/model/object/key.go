package object

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Key names an object: its resource, as selector.Resource.String returns it, and
// its name. Only the uid says whether it is still the same object.
type Key struct {
	Resource string
	types.NamespacedName
}

// String returns the key as log lines show it.
func (k Key) String() string { return k.Resource + "/" + k.NamespacedName.String() }

// StreamKey names a watch: a resource in one namespace, or in all of them if the
// namespace is empty.
type StreamKey struct{ Resource, Namespace string }

// Has reports whether the watch shows the object.
func (s StreamKey) Has(key Key) bool {
	return key.Resource == s.Resource && (s.Namespace == "" || key.Namespace == s.Namespace)
}

// WatchEvent is what a watch has shown of an object. The type is empty for an
// object that the initial list has found.
type WatchEvent struct {
	Type     watch.EventType
	Snapshot *Snapshot
}
