package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Memo finds what is kept in memory of an object, for those that are called beside
// the watches. What the operator does not watch, or does not know yet, has nothing
// that would last: there would be nobody to see its end. So there are new values at
// every call, as there are for an empty uid.
func (e *Engine) Memo(resource selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values {
	s := e.served.get(resource.String())
	if uid == "" || s == nil || !s.has(name, uid) {
		return memo.NewValues(e.Memos)
	}
	key := object.Key{Resource: s.name, NamespacedName: name}
	known := e.memories.known(key)
	values := e.memories.of(key).memos(uid, e.Memos)
	if !known && !s.has(name, uid) {
		e.memories.forget(key) // its end has come in between, and was the last that is heard of it
	}
	return values
}

// has tells whether the watch shows the object.
func (s *served) has(name types.NamespacedName, uid types.UID) bool {
	snapshot := s.cached(name)
	return snapshot != nil && snapshot.GetUID() == uid
}
