package faults

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/reconcile/tilingtest"
)

// mostChanges is the number of changes to the essence of an object in a storm: of more states in
// one cycle, the operator forgets the oldest ones.
const mostChanges = 8

// live creates the object and changes it, as other clients do, and sometimes replaces or deletes it.
func (s *subject) live() {
	dice := s.storm.dice(s.name, "others")
	<-time.After(upTo(dice, 100*time.Millisecond))
	s.mu.Lock()
	s.create(dice)
	s.mu.Unlock()
	for range dice.IntN(mostChanges) {
		<-time.After(upTo(dice, 250*time.Millisecond))
		s.edit(dice)
	}
	if dice.IntN(4) == 0 {
		s.replace(dice)
		<-time.After(upTo(dice, 250*time.Millisecond))
		s.edit(dice)
	}
	if dice.IntN(4) == 0 {
		s.remove()
	}
}

// replace deletes the object by force, and creates another one of the same name.
func (s *subject) replace(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storm.try(cluster.Client().Patch(context.Background(), s.object.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`)))
	s.storm.try(cluster.Client().Delete(context.Background(), s.object.DeepCopy()))
	s.note("another client has deleted the object by force")
	s.judgeLedger()
	s.ledger, s.released = tilingtest.New(tiled...), false
	clear(s.results)
	clear(s.said)
	s.create(dice)
}

// create creates the object. The subject is locked.
func (s *subject) create(dice *rand.Rand) {
	obj := s.object.DeepCopy()
	obj.SetLabels(map[string]string{"on": oneOf(dice, "yes", "no")})
	err := cluster.Client().Create(context.Background(), obj)
	s.changed("created", obj, err)
}

// edit makes a random change of another client.
func (s *subject) edit(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := dice.IntN(8)
	value := int64(dice.IntN(3))
	if s.deleting || s.storm.calm.Load() || what < 7 && s.changes >= mostChanges {
		return
	}
	obj, err := cluster.Current(s.object)()
	if err != nil {
		s.storm.try(err)
		return
	}
	switch what {
	case 0, 1, 2, 3:
		_ = unstructured.SetNestedField(obj.Object, value, "spec", "a")
	case 4, 5:
		_ = unstructured.SetNestedField(obj.Object, value, "spec", "b")
	case 6:
		obj.SetLabels(map[string]string{"on": oneOf(dice, "yes", "no"), "example.com/third": oneOf(dice, "a", "b")})
	case 7:
		toggle(obj)
	}
	if what < 7 {
		s.changes++
	}
	err = cluster.Client().Update(context.Background(), obj)
	s.changed("changed", obj, err)
	if what == 6 {
		s.ledger.Loosen("labeled")
	}
}

// toggle adds or removes the finalizer of others.
func toggle(obj *unstructured.Unstructured) {
	finalizers := obj.GetFinalizers()
	if contains(finalizers, otherFinalizer) {
		obj.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == otherFinalizer }))
		return
	}
	obj.SetFinalizers(append(finalizers, otherFinalizer))
}

// changed notes what others have written. The subject is locked.
func (s *subject) changed(how string, obj *unstructured.Unstructured, err error) {
	if err != nil {
		s.storm.try(err)
		return
	}
	after, err := stateFrom(obj)
	if err != nil {
		s.storm.try(err)
		return
	}
	s.committed, s.uid, s.others = after, string(after.body.UID()), foreign(after.body)
	s.note("another client has %s the object, version %s: %s", how, after.body.ResourceVersion(), s.others)
}

// remove deletes the object, and removes the finalizer of others some time later.
func (s *subject) remove() {
	dice := s.storm.dice(s.name, "deletion")
	s.deleteObject()
	<-time.After(upTo(dice, 300*time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := cluster.Current(s.object)()
	if err == nil && contains(obj.GetFinalizers(), otherFinalizer) {
		toggle(obj)
		err = cluster.Client().Update(context.Background(), obj)
		s.changed("let go", obj, err)
	}
	s.storm.try(err)
}

func (s *subject) deleteObject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := cluster.Current(s.object)()
	if err != nil || s.deleting {
		s.storm.try(err)
		return
	}
	s.deleting, s.mourned = true, contains(obj.GetFinalizers(), ourFinalizer)
	s.storm.try(cluster.Client().Delete(context.Background(), obj))
	s.note("another client has deleted the object")
	if now, err := s.now(); err == nil && now.body != nil {
		s.committed = now
	}
}
