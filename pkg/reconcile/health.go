package reconcile

import (
	"cmp"
	"slices"
)

// Watching is the state of one watch.
type Watching struct {
	// Resource is its name, as keys have it; Namespace is empty for all of them.
	Resource, Namespace string
	// Listed: all objects are known that were there at its beginning.
	Listed bool
	// Err is why it does not go on; nil if it does. It is tried again.
	Err error
}

// Watching are the watches as they are now, in order. It can be called at any time.
func (e *Engine) Watching() []Watching {
	var all []Watching
	for _, s := range e.served.all() {
		for _, w := range s.streams.all() {
			all = append(all, Watching{s.name, w.namespace, w.listening.HasSynced(), w.trouble()})
		}
	}
	slices.SortFunc(all, func(a, b Watching) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}
