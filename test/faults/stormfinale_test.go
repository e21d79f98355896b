package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// curtain is how long a scene waits for what it needs.
const curtain = 2 * time.Second

// finale plays a scene at the end of a life. Nothing else changes the object afterwards, so what
// the operator forgets or mistakes then stays so.
func (s *subject) finale() {
	if !s.await(func(now state) bool { return now.base() != nil }) {
		return // the object is still being created
	}
	dice := s.storm.dice(s.name, "finale")
	scene := oneOf(dice, (*subject).reverse, (*subject).restoreRecord, (*subject).restoreFinalizer, (*subject).unlabel, (*subject).inherit)
	if s.note("the scene is played"); dice.IntN(6) > 0 {
		scene(s, dice)
	}
}

// reverse takes a change back while handlers are retried for it.
func (s *subject) reverse(*rand.Rand) {
	s.set("a", 7)
	if s.await(isRetried) {
		s.takeBack()
	}
}

// inherit kills the operator while handlers are retried, so that Kopf can continue. Another change
// follows.
func (s *subject) inherit(dice *rand.Rand) {
	if s.storm.steady {
		return
	}
	s.set("a", 8)
	if !s.await(isRetried) {
		return
	}
	s.mu.Lock()
	writer := s.writer
	s.mu.Unlock()
	writer.die()
	<-time.After(upTo(dice, 200*time.Millisecond))
	s.set("a", 9)
}

// unlabel removes the need for the finalizer.
func (s *subject) unlabel(*rand.Rand) {
	s.relabel(func(labels map[string]string) { labels["on"] = "yes" })
	if s.await(state.isHeld) {
		s.relabel(func(labels map[string]string) { labels["on"] = "no" })
	}
}

// restoreRecord adds the record of a change that was handled long ago to an object at rest, as
// people do who restore annotations.
func (s *subject) restoreRecord(*rand.Rand) {
	if s.await(isAtRest) {
		s.litter()
	}
}

// restoreFinalizer adds our finalizer to an object at rest that does not need it.
func (s *subject) restoreFinalizer(*rand.Rand) {
	if !s.storm.free {
		return
	}
	s.relabel(func(labels map[string]string) { labels["on"] = "no" })
	if s.await(func(now state) bool { return isAtRest(now) && !s.needsFinalizer(now.body) }) {
		s.change("given our finalizer to", func(obj *unstructured.Unstructured) {
			if finalizers := obj.GetFinalizers(); !slices.Contains(finalizers, ourFinalizer) {
				obj.SetFinalizers(append(finalizers, ourFinalizer))
			}
		})
	}
}

// isRetried reports whether a handler has failed, and will be called again.
func isRetried(now state) bool {
	return slices.ContainsFunc([]string{"limited", "timed", "updated", "all", "field_a/spec.a"}, func(id string) bool {
		record := now.record(id)
		return record != nil && record.Retries > 0 && !record.Finished()
	})
}

// isAtRest reports whether no cycle is open.
func isAtRest(now state) bool {
	return now.base() != nil && len(now.leftovers()) == 0 && equal(now.base(), diffBase.Build(now.body, nil))
}

// await waits until the object is in a state. It returns false if that takes too long, or if the
// object does not exist.
func (s *subject) await(isReached func(now state) bool) bool {
	for until := time.Now().Add(curtain); time.Now().Before(until); {
		s.mu.Lock()
		reached := s.committed.body != nil && !s.absent && !s.deleting && isReached(s.committed)
		s.mu.Unlock()
		if reached {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

// set changes a field for certain, unless there are too many states already.
func (s *subject) set(field string, value int64) {
	s.mu.Lock()
	isPossible := s.changes < mostChanges && !s.absent
	s.mu.Unlock()
	if isPossible {
		s.change("changed", func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, value, "spec", field)
		})
	}
}

// change changes the object as another client.
func (s *subject) change(how string, change func(obj *unstructured.Unstructured)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.deleting {
		s.storm.try(err)
		return
	}
	s.changes++
	change(obj)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed(how, obj, err)
}
