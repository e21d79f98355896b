package children

import "k8s.io/apimachinery/pkg/runtime/schema"

// Watcher watches kinds of children that nobody has declared, because they become known only
// when a handler returns an object of the kind. Its methods are safe for concurrent use, and do
// not wait.
type Watcher interface {
	// Watch makes sure that a kind is watched from now on, in its preferred version or in the
	// one that is watched already, and that its objects are in the index. The function is
	// called once, in any goroutine, when the index has all of them; soon, if it has them
	// already. It is not called if the kind does not exist or cannot be listed, until it can.
	Watch(kind schema.GroupKind, listed func())
	// State returns whether the index can be relied on for a kind.
	State(kind schema.GroupKind) WatchState
}

// WatchState is the state of the watch of one kind of children.
type WatchState struct {
	// Kind is nil if the cluster does not serve the kind, or if it is not watched yet.
	Kind *Kind
	// Listed is set if the index has all objects of the kind, in all watched namespaces.
	Listed bool
	// Err is why the watch does not continue at the moment, or nil.
	Err error
}

// IsSynced reports whether the index has all objects of the kind, and their changes arrive.
func (s WatchState) IsSynced() bool { return s.Kind != nil && s.Listed && s.Err == nil }
