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

// litter adds the record of a change that was handled long ago to an object without an open
// cycle, as people do who restore annotations.
func (s *subject) litter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := cluster.Current(s.object)()
	if err != nil || s.deleting || s.absent || s.storm.statusRecords {
		s.storm.try(err)
		return
	}
	now, err := stateFrom(obj)
	if err != nil || now.base() == nil || len(now.leftovers()) > 0 || !equal(now.base(), diffBase.Build(now.body, nil)) {
		s.storm.try(err)
		return
	}
	annotations := obj.GetAnnotations()
	annotations[ourPrefix+"all"] = `{"started":"2026-01-01T00:00:00.000000+00:00","stopped":"2026-01-01T00:00:00.000000+00:00","purpose":"create","retries":1,"success":true,"failure":false}`
	obj.SetAnnotations(annotations)
	err = cluster.Client().Update(context.Background(), obj)
	s.changed("littered", obj, err)
	s.ledger.Loosen("all")
}

func (w *stormWrite) hasDamage() bool { return w.storm.damage && !w.dry() }
