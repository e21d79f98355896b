package virtual

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/condition"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// web returns one deployment.
func web(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	labels := map[string]string{"app": c.Name()}
	return []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		},
	}}}, nil
}

// An object is ready only as long as the children are for which its handler waits.
func TestObjectIsReadyWithItsChildren(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, web, kopf.ID("children"), kopf.WaitReady())
		r.Conditions(examples)
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		expect := func(ready, reason string) {
			t.Helper()
			h.Get(one)
			if got := condition.Of(one.Object).Get("Ready"); got["status"] != ready || got["reason"] != reason {
				t.Errorf("got %v, want %s", got, reason)
			}
		}
		expect("False", "ChildrenNotReady")
		h.Restart()
		h.Advance(time.Minute)
		expect("False", "ChildrenNotReady")
		for _, replicas := range []int32{1, 0, 1} {
			before := len(h.Writes())
			setAvailable(t, h, one, replicas)
			if replicas == 1 {
				expect("True", "Reconciled")
			} else {
				expect("False", "ChildrenNotReady")
			}
			if writes := h.Writes()[before:]; len(writes) != 1 {
				t.Errorf("got the writes %v", writes)
			}
		}
	})
}

// setAvailable lets the deployment of an object have so many available replicas of one.
func setAvailable(t *testing.T, h *kopftest.Harness, of *unstructured.Unstructured, replicas int32) {
	t.Helper()
	child := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: of.GetName(), Namespace: of.GetNamespace()}}
	h.Get(child)
	child.Status = appsv1.DeploymentStatus{
		ObservedGeneration: child.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	if err := h.Client().Status().Update(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	h.Advance(time.Minute)
}
