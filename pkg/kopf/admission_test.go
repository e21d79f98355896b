package kopf

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

type fields = map[string]any

func podOn(node any) *object.Body {
	return object.NewBody(fields{
		"apiVersion": "v1", "kind": "Pod", "metadata": fields{"name": "one"},
		"spec": fields{"nodeName": node, "unknown": "kept"},
	})
}

// reviewPod calls a typed handler with a review.
func reviewPod(t *testing.T, review *handler.Review, fn func(context.Context, *corev1.Pod, *Admission) error) (*handler.Call, error) {
	t.Helper()
	r := NewRegistry()
	For[*corev1.Pod](r).OnMutate(fn, ID("fn"))
	d := only(t, r)
	subject := handler.CallContext{Body: review.Body(), Patch: &patch.Patch{}, Resource: &selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}}
	a := handler.NewCall(d, subject, handler.Attempt{})
	a.Review = review
	_, err := d.Call(t.Context(), a)
	return a, err
}

func TestTypedAdmission(t *testing.T) {
	update := &handler.Review{Operation: "UPDATE", Old: podOn("n1"), New: podOn("n2")}
	a, err := reviewPod(t, update, func(_ context.Context, object *corev1.Pod, a *Admission) error {
		old := &corev1.Pod{}
		known, err := a.DecodeOld(old)
		if err != nil || !known || object.Spec.NodeName != "n2" || old.Spec.NodeName != "n1" || a.Name() != "one" {
			t.Errorf("got %+v, %+v, %v", object, old, err)
		}
		Update(a, func(p *corev1.Pod) error { p.Spec.NodeName = "n3"; return nil })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := a.Context.Patch.Applied(update.New.Raw())
	spec, _ := changed["spec"].(fields)
	if err != nil || spec["nodeName"] != "n3" || spec["unknown"] != "kept" {
		t.Errorf("got %v, %v", changed, err)
	}
}

func TestTypedAdmissionWithoutAnObject(t *testing.T) {
	options := object.NewBody(fields{"apiVersion": "v1", "kind": "PodExecOptions", "container": "main"})
	tests := map[string]struct {
		review      *handler.Review
		object, old bool
	}{
		"a creation":   {review: &handler.Review{Operation: "CREATE", New: podOn("n1")}, object: true},
		"a deletion":   {review: &handler.Review{Operation: "DELETE", Old: podOn("n1")}, object: true, old: true},
		"a connection": {review: &handler.Review{Operation: "CONNECT", Subresource: "exec", New: options}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := reviewPod(t, test.review, func(_ context.Context, p *corev1.Pod, a *Admission) error {
				old, err := a.DecodeOld(&corev1.Pod{})
				if (p != nil) != test.object || old != test.old || err != nil {
					t.Errorf("got %v, %v, %v", p, old, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAReviewOfAnObjectThatDoesNotFitTheTypeIsAMisfit(t *testing.T) {
	_, err := reviewPod(t, &handler.Review{Operation: "CREATE", New: podOn(1)}, func(context.Context, *corev1.Pod, *Admission) error {
		t.Error("it was called")
		return nil
	})
	if misfit := handler.AsMisfit(err); misfit == nil || misfit.Field != "spec.nodeName" || misfit.Former {
		t.Errorf("got %v", err)
	}
}

// A handler must be able to admit the correction of an object.
func TestAReviewOfACorrectionReachesTheHandler(t *testing.T) {
	called := false
	_, err := reviewPod(t, &handler.Review{Operation: "UPDATE", Old: podOn(1), New: podOn("n1")}, func(_ context.Context, _ *corev1.Pod, a *Admission) error {
		called = true
		_, err := a.DecodeOld(&corev1.Pod{})
		return err
	})
	if misfit := handler.AsMisfit(err); !called || misfit == nil || !misfit.Former {
		t.Errorf("got %v, called: %v", err, called)
	}
}
