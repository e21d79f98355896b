package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostChanges is the number of changes to the essence of an object in a storm: of more states in
// one cycle, the operator forgets the oldest ones.
const mostChanges = 8

// mourning is how long an object is being deleted in a storm.
const mourning = 1500 * time.Millisecond

// live creates the object and changes it, as other clients do, and sometimes replaces or deletes it.
func (s *subject) live() {
	dice := s.storm.dice(s.name, "others")
	<-time.After(upTo(dice, 100*time.Millisecond))
	s.mu.Lock()
	s.create(dice)
	s.mu.Unlock()
	if s.storm.patient {
		s.await(isAtRest)
	}
	for range dice.IntN(mostChanges) {
		s.pace(dice)
		s.reappear()
		s.edit(dice)
		s.meddle(s.storm.dice(s.name, "trouble", s.changesSoFar()))
	}
	if dice.IntN(4) == 0 {
		s.replaceOnce()
		s.pace(dice)
		s.edit(dice)
	}
	if dice.IntN(4) == 0 {
		s.remove()
		return
	}
	for range 5 {
		<-time.After(upTo(dice, 100*time.Millisecond))
		if s.storm.damage {
			s.litter()
		}
		s.meddle(dice)
	}
	s.finale()
}

// changesSoFar returns how often other clients have changed the object: also in the middle of calls.
func (s *subject) changesSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// pace waits a while and, mostly, until the operator has done something since the last change: on
// a busy machine, all changes would become one otherwise.
func (s *subject) pace(dice *rand.Rand) {
	<-time.After(upTo(dice, 250*time.Millisecond))
	if dice.IntN(4) > 0 {
		s.await(func(state) bool { return s.writes > s.writesBefore })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writesBefore = s.writes
}

// create creates the object. The subject is locked.
func (s *subject) create(dice *rand.Rand) {
	obj := s.object.DeepCopy()
	obj.SetLabels(map[string]string{"on": oneOf(dice, "yes", "no")})
	err := s.storm.cluster.Client().Create(context.Background(), obj)
	s.changed("created", obj, err)
	s.born = number(obj.GetResourceVersion())
}

// edit makes a random change of another client.
func (s *subject) edit(dice *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := dice.IntN(8)
	if dice.IntN(4) == 0 && s.storm.requests {
		what = 8 + dice.IntN(2)
	}
	value := int64(dice.IntN(3))
	if s.deleting || s.storm.calm.Load() || what < 7 && s.changes >= mostChanges {
		return
	}
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil {
		s.storm.try(err)
		return
	}
	s.tryForbidden(obj)
	switch what {
	case 8:
		s.ask(dice)
		return
	case 9:
		s.suspend(dice)
		return
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
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("changed", obj, err)
	if what == 6 {
		s.ledger.Loosen("labeled")
	}
}

// takeBack restores the state that was handled last.
func (s *subject) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	base, _ := s.committed.base()["spec"].(map[string]any)
	if s.deleting || s.absent || base == nil || s.storm.calm.Load() || s.changes >= mostChanges {
		return
	}
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil {
		s.storm.try(err)
		return
	}
	s.changes++
	for _, field := range []string{"a", "b"} {
		_ = unstructured.SetNestedField(obj.Object, base[field], "spec", field)
	}
	labels, _, _ := unstructured.NestedStringMap(s.committed.base(), "metadata", "labels")
	obj.SetLabels(labels)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("taken back the changes of", obj, err)
	s.ledger.Loosen("labeled")
}

// flip changes the label that handlers are filtered by, even if the object is being deleted.
func (s *subject) flip() {
	s.relabel(func(labels map[string]string) {
		if labels["on"] = map[string]string{"yes": "no", "no": "yes"}[labels["on"]]; labels["on"] == "" {
			labels["on"] = "yes"
		}
	})
}

// touch changes the object for certain.
func (s *subject) touch() {
	s.relabel(func(labels map[string]string) { labels["example.com/touched"] = fmt.Sprint(s.changes) })
}

func (s *subject) relabel(change func(map[string]string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil {
		s.storm.try(err)
		return
	}
	s.changes++
	labels := obj.GetLabels()
	change(labels)
	obj.SetLabels(labels)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("relabeled", obj, err)
	s.ledger.Loosen("labeled")
}

// hold adds the finalizer of others.
func (s *subject) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.deleting || contains(obj.GetFinalizers(), otherFinalizer) {
		s.storm.try(err)
		return
	}
	toggle(obj)
	err = s.storm.cluster.Client().Update(context.Background(), obj)
	s.changed("held", obj, err)
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
	s.judgeReview(obj)
	s.committed, s.uid, s.others = after, string(after.body.UID()), foreign(after.body)
	s.note("another client has %s the object, version %s: %s", how, after.body.ResourceVersion(), s.others)
}

// remove deletes the object, and removes the finalizer of others some time later.
func (s *subject) remove() {
	dice := s.storm.dice(s.name, "deletion")
	s.reappear()
	if dice.IntN(2) == 0 {
		s.hold()
	}
	s.deleteObject()
	if s.storm.rivals {
		s.awaitRelease()
		<-time.After(rivalPatience)
	} else if dice.IntN(2) == 0 {
		s.awaitRelease()
	}
	<-time.After(upTo(dice, 300*time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err == nil && contains(obj.GetFinalizers(), otherFinalizer) {
		toggle(obj)
		err = s.storm.cluster.Client().Update(context.Background(), obj)
		s.changed("let go", obj, err)
	}
	s.storm.try(err)
}

// awaitRelease lets the storm rage on while the object is being released.
func (s *subject) awaitRelease() {
	isReleased := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.released
	}
	for until := time.Now().Add(mourning); time.Now().Before(until) && !isReleased(); {
		<-time.After(10 * time.Millisecond)
	}
}

func (s *subject) deleteObject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, err := s.storm.cluster.Current(s.object)()
	if err != nil || s.deleting {
		s.storm.try(err)
		return
	}
	s.deleting, s.mourned = true, contains(obj.GetFinalizers(), ourFinalizer)
	s.storm.try(s.storm.cluster.Client().Delete(context.Background(), obj))
	s.note("another client has deleted the object")
	if now, err := s.now(); err == nil && now.body != nil {
		s.committed = now
	}
}
