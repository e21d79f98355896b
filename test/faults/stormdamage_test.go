package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/storage"
)

// damage makes a stored value of the operator unreadable, as people can by mistake. It counts as
// absent, so handlers may be called again, and from another state. The object must come to rest in
// any case, and everything that others have written must stay.
func (s *subject) damage(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.deleting || s.absent || s.storm.calm.Load() {
		s.storm.try(err)
		return
	}
	annotations := obj.GetAnnotations()
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(annotations)), func(key string) bool {
		return !strings.HasPrefix(key, ourPrefix) || strings.HasPrefix(key, requestPrefix) || key == convergence.PlacesAnnotation || key == runKey
	})
	if len(keys) < 2 { // the base alone: no cycle is open
		return
	}
	key := oneOf(dice, keys...)
	annotations[key] = oneOf(dice, "", "{", "[]", "text", annotations[key][:len(annotations[key])/2])
	obj.SetAnnotations(annotations)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
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
	obj, err := s.storm.cluster.Current(s.object)()
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
	annotations[ourPrefix+"all"] = fmt.Sprintf(`{"started":%q,"stopped":%[1]q,"purpose":"create","retries":1,"success":true,"failure":false}`, littered)
	obj.SetAnnotations(annotations)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("littered", obj, err)
	s.ledger.Loosen("all")
}

// littered is the time of the restored record.
const littered = "2026-01-01T00:00:00.000000+00:00"

// isLitter reports whether a record was restored by others. It is final, so a call that ends
// afterwards does not count.
func isLitter(r *storage.Record) bool {
	return r != nil && r.Started.UTC().Format(timeFormat) == littered
}

func (w *stormWrite) hasDamage() bool { return w.storm.damage && !w.dry() }
