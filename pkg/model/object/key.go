package object

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Key identifies an object by its resource (as selector.Resource.String returns it), its
// namespace, and its name. Objects recreated under the same name have the same Key.
type Key struct {
	Resource string
	types.NamespacedName
}

// String returns the key in the form of log lines.
func (k Key) String() string { return k.Resource + "/" + k.NamespacedName.String() }

// StreamKey identifies a watch: a resource in one namespace, or in all of them if the
// namespace is empty.
type StreamKey struct{ Resource, Namespace string }

// Has reports whether the watch covers the object.
func (s StreamKey) Has(key Key) bool {
	return key.Resource == s.Resource && (s.Namespace == "" || key.Namespace == s.Namespace)
}

// Vanished is the type of an event of a watch with selectors: the watch does not show the object anymore. The object
// is deleted, or it does not match the selectors anymore. The API server sends the same for both.
const Vanished watch.EventType = "VANISHED"

// WatchEvent is an event of a watch. The type is empty for an object from the initial
// list.
type WatchEvent struct {
	Type     watch.EventType
	Snapshot *Snapshot
}
