package kopftest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// parts returns as many config maps as the spec says, and one in another namespace.
func parts(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	size, _ := c.Spec().Int64("size")
	all := []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: "elsewhere"}, Data: map[string]string{"of": c.Name()},
	}}
	for i := range size {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.Name(), i)}, Data: map[string]string{"size": fmt.Sprint(size)},
		})
	}
	return all, nil
}

// countParts returns the numbers of config maps in two namespaces.
func countParts(t *testing.T, h *kopftest.Harness) (near, far int) {
	t.Helper()
	var list corev1.ConfigMapList
	if err := h.Client().List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Items {
		if one.Namespace == "elsewhere" {
			far++
		} else {
			near++
		}
	}
	return near, far
}

// The operator is killed before and after each write, also of the children; writes fail, and
// answers are lost.
func TestSweepOfEnsuredChildren(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			r.Ensure(examples, parts, kopf.ID("parts"), kopf.Backoff(time.Second))
		}), fault, kopftest.CRDs(crds), kopftest.Settings(withName))
		h.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		one := example("one")
		one.Object["spec"] = map[string]any{"size": int64(3)}
		h.Create(one)
		h.Advance(2 * time.Minute)
		if near, far := countParts(t, h); near != 3 || far != 1 {
			t.Errorf("after the creation: %d and %d", near, far)
		}
		h.Patch(one, `{"spec":{"size":2}}`)
		h.Advance(2 * time.Minute)
		if near, far := countParts(t, h); near != 2 || far != 1 {
			t.Errorf("after the change: %d and %d", near, far)
		}
		child := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: one.GetNamespace(), Name: "one-0"}}
		h.Patch(child, `{"data":{"size":"7"}}`)
		h.Advance(2 * time.Minute)
		h.Delete(one)
		h.Advance(2 * time.Minute)
		if _, far := countParts(t, h); far != 0 {
			t.Errorf("after the deletion: %d", far)
		}
	})
}
