package kopftest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// owned creates an object with owners.
func owned(h *kopftest.Harness, name string, owners ...client.Object) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, owner := range owners {
		kind := owner.GetObjectKind().GroupVersionKind()
		if kind.Empty() {
			kind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
		}
		made.OwnerReferences = append(made.OwnerReferences, metav1.OwnerReference{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: new(true),
		})
	}
	h.Create(made)
	return made
}

// left returns the names of the objects that exist.
func left(h *kopftest.Harness, all ...client.Object) string {
	var names []string
	for _, one := range all {
		if h.Exists(one) {
			names = append(names, one.GetName())
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

func TestCollectGarbage(t *testing.T) {
	tests := map[string]struct {
		policy metav1.DeletionPropagation
		before string // the collection
		want   string
	}{
		"in the background": {metav1.DeletePropagationBackground, "[both child grandchild other]", "[both other]"},
		"in the foreground": {metav1.DeletePropagationForeground, "[both child grandchild one other]", "[both other]"},
		"making orphans":    {metav1.DeletePropagationOrphan, "[both child grandchild one other]", "[both child grandchild other]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(*kopf.Registry) {}, func(t *testing.T, h *kopftest.Harness) {
				one, other := example("one"), example("other")
				h.Create(one)
				h.Create(other)
				child, both := owned(h, "child", one), owned(h, "both", one, other)
				grandchild := owned(h, "grandchild", child)
				if err := h.Client().Delete(t.Context(), one, client.PropagationPolicy(test.policy)); err != nil {
					t.Fatal(err)
				}
				h.Settle()
				if got := left(h, one, other, child, both, grandchild); got != test.before {
					t.Errorf("before the collection: %s", got)
				}
				h.CollectGarbage()
				if got := left(h, one, other, child, both, grandchild); got != test.want {
					t.Errorf("got %s", got)
				}
				if h.Get(both); len(both.OwnerReferences) != 1 || both.OwnerReferences[0].Name != "other" {
					t.Errorf("the references are %v", both.OwnerReferences)
				}
			})
		})
	}
}

// An owner is a certain object: another one of its name is not. References to kinds that do not
// exist, and from the cluster into a namespace, are left alone.
func TestGarbageIsWhatHasNoOwner(t *testing.T) {
	inVirtualTime(t, func(*kopf.Registry) {}, func(t *testing.T, h *kopftest.Harness) {
		former := example("one")
		h.Create(former)
		child := owned(h, "child", former)
		h.Delete(former)
		h.Create(example("one"))
		unknown := &unstructured.Unstructured{}
		unknown.SetAPIVersion("example.com/v1")
		unknown.SetKind("Unknown")
		unknown.SetName("x")
		unknown.SetUID("x")
		strange := owned(h, "strange", unknown)
		wide := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "wide", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"},
		}}}
		h.Create(wide)
		h.CollectGarbage()
		if got := left(h, child, strange, wide); got != "[strange wide]" {
			t.Errorf("got %s", got)
		}
	})
}

// The operator handles the deletion of children before their own children go.
func TestGarbageWithFinalizers(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnDelete(kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("delete"))
	}
	inVirtualTime(t, declare, func(t *testing.T, h *kopftest.Harness) {
		one := example("one")
		h.Create(one)
		child := owned(h, "child", one)
		grandchild := owned(h, "grandchild", child)
		h.Settle()
		h.Delete(one)
		h.CollectGarbage()
		if got := left(h, child, grandchild); got != "[]" || len(h.Calls("delete")) != 2 {
			t.Errorf("got %s, and %v", got, summary(h.Calls()))
		}
	})
}
