package virtual

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// copyOf returns what `kubectl get -o yaml` saves of an object, under another name and without the status.
func copyOf(obj *unstructured.Unstructured, name string) *unstructured.Unstructured {
	saved := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(saved.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(saved.Object, "status")
	saved.SetName(name)
	return saved
}

// expectReady checks the condition of an object, which must be about its current generation.
func expectReady(t *testing.T, h *kopftest.Harness, of *unstructured.Unstructured, ready, reason string) {
	t.Helper()
	h.Get(of)
	observed, _, _ := unstructured.NestedInt64(of.Object, "status", "observedGeneration")
	got := condition.Of(of.Object).Get(condition.Ready)
	if got["status"] != ready || got["reason"] != reason || got["observedGeneration"] != of.GetGeneration() || observed != of.GetGeneration() {
		t.Errorf("%s: got %v and the observed generation %d, want %s, %s, and the generation %d", of.GetName(), got, observed, ready, reason, of.GetGeneration())
	}
}

// A copy brings the annotations of its original, so that no handler is called for it. Its conditions are about
// the copy nevertheless: they have its generation.
func TestConditionsOfACopyAreAboutTheCopy(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		handle := func(context.Context, *kopf.Change) error { return nil }
		r.OnCreate(examples, handle, kopf.ID("handle"))
		r.OnUpdate(examples, handle, kopf.ID("handle"))
		r.Conditions(examples)
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"spec": {"size": 4}}`)
		h.Advance(time.Minute)
		expectReady(t, h, one, "True", "Reconciled")
		saved, calls := one.DeepCopy(), len(h.Calls("handle"))

		two := copyOf(saved, "two")
		h.Create(two)
		h.Advance(time.Minute)
		expectReady(t, h, two, "True", "Reconciled")

		h.Delete(one)
		h.Advance(time.Minute)
		one = copyOf(saved, "one")
		h.Create(one)
		h.Advance(time.Minute)
		expectReady(t, h, one, "True", "Reconciled")
		if again := len(h.Calls("handle")); again != calls {
			t.Errorf("the handlers are called %d times, want %d", again, calls)
		}
		if one.GetGeneration() == saved.GetGeneration() {
			t.Error("the copy has the generation of its original")
		}
	})
}

// A copy is ready when its own children are, not those of its original.
func TestCopyWaitsForItsOwnChildren(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, web, kopf.ID("children"), kopf.WaitReady())
		r.Conditions(examples)
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		setAvailable(t, h, one, 1)
		expectReady(t, h, one, "True", "Reconciled")
		saved := one.DeepCopy()

		two := copyOf(saved, "two")
		h.Create(two)
		h.Advance(time.Minute)
		expectReady(t, h, two, "False", "ChildrenNotReady")
		expectReady(t, h, one, "True", "Reconciled")
		setAvailable(t, h, two, 1)
		expectReady(t, h, two, "True", "Reconciled")

		h.Delete(one)
		h.Advance(time.Minute)
		h.CollectGarbage()
		one = copyOf(saved, "one")
		h.Create(one)
		h.Advance(time.Minute)
		expectReady(t, h, one, "False", "ChildrenNotReady")
		setAvailable(t, h, one, 1)
		expectReady(t, h, one, "True", "Reconciled")
	})
}
