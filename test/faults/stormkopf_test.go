package faults

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/storage"
)

// takeOver does to the object what an operator of Kopf does that works while none of ours does: it
// calls some handlers and rewrites their records, without the keys that it does not know, or
// finishes the entire cycle, and leaves behind what it does not know.
func (s *subject) takeOver(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.deleting || s.absent {
		s.storm.try(err)
		return
	}
	now, err := stateFrom(obj)
	if err != nil {
		s.storm.try(err)
		return
	}
	annotations := obj.GetAnnotations()
	finishes := dice.IntN(3) > 0
	open := false
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		record := storage.Record{}
		if !isRecord(key) {
			continue
		}
		if json.Unmarshal([]byte(annotations[key]), &record) != nil {
			return // Kopf fails for objects with unreadable records
		}
		open = true
		if annotations[key] = rewritten(annotations[key], dice); finishes {
			delete(annotations, key)
		}
	}
	if !open {
		return
	}
	if finishes {
		annotations[baseKey] = textOf(diffBase.Build(now.body, nil)) + "\n"
	}
	obj.SetAnnotations(annotations)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("as Kopf changed", obj, err)
	s.ledger.Loosen(append(slices.Collect(maps.Keys(s.calls)), tiled...)...)
	if last := lastOf(now.body); finishes && err == nil {
		for _, id := range tiled {
			s.ledger.Settle(id, last[id])
		}
	}
	clear(s.ended)
	clear(s.resumed)
}

// isRecord reports whether an annotation contains the record of a handler.
func isRecord(key string) bool {
	return strings.HasPrefix(key, ourPrefix) && !strings.HasPrefix(key, baseKey) && !strings.HasPrefix(key, requestPrefix) && key != runKey
}

// rewritten returns a record as Kopf stores it again, with a clock that is different.
func rewritten(text string, dice *rand.Rand) string {
	record := map[string]any{}
	_ = json.Unmarshal([]byte(text), &record)
	delete(record, "cycle")
	if record["success"] != true && record["failure"] != true && dice.IntN(2) == 0 {
		skew := upTo(dice, 200*time.Millisecond) - 100*time.Millisecond
		record["success"], record["stopped"] = true, time.Now().UTC().Add(skew).Format(timeFormat)
		delete(record, "delayed")
	}
	return textOf(record)
}
