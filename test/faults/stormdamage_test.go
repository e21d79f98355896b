package faults

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// damage makes a stored value of the operator unreadable, as people can by mistake. It counts as
// absent, so handlers may be called again, and from another state. The object must come to rest in
// any case, and everything that others have written must stay.
func (s *subject) damage(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := cluster.Current(s.object)()
	if err != nil || s.deleting || s.absent || s.storm.calm.Load() {
		s.storm.try(err)
		return
	}
	annotations := obj.GetAnnotations()
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(annotations)), func(key string) bool {
		return !strings.HasPrefix(key, ourPrefix) || strings.HasPrefix(key, requestPrefix)
	})
	if len(keys) < 2 { // the base alone: no cycle is open
		return
	}
	key := oneOf(dice, keys...)
	annotations[key] = oneOf(dice, "", "{", "[]", "text", annotations[key][:len(annotations[key])/2])
	obj.SetAnnotations(annotations)
	err = cluster.Client().Update(context.Background(), obj)
	s.changed("damaged "+key+" of", obj, err)
	s.ledger.Loosen(append(slices.Collect(maps.Keys(s.calls)), tiled...)...)
	s.damaged = true
	clear(s.ended)
}

func (w *stormWrite) hasDamage() bool { return w.storm.damage && !w.dry() }
