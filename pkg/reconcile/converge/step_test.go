package converge

import (
	"context"
	"errors"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func expect(t *testing.T, o *operator, want ...string) {
	t.Helper()
	got, err := o.step(t)
	if err != nil || !reflect.DeepEqual(got, append([]string(nil), want...)) {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
}

func TestChildIsCreatedOnceWithoutAWatch(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	expect(t, o) // the watch shows nothing yet, but the answer counts
	o.show(o.objects["one"])
	expect(t, o)
}

func TestStaleWatchDoesNotCount(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	stale := o.objects["one"].DeepCopy()
	stale.SetResourceVersion("50")
	stale.SetManagedFields(nil)
	o.show(stale)
	expect(t, o)
}

func TestSuccessorJudgesByTheWatch(t *testing.T) {
	c := &cluster{objects: map[string]*unstructured.Unstructured{}}
	expect(t, newOperator(c), "apply one")
	next := newOperator(c)
	next.show(c.objects["one"])
	expect(t, next)
	blind := newOperator(c) // whose watch has not shown the child
	expect(t, blind, "apply one", "get one")
	expect(t, blind)
}

func TestReplacedChildIsNotChanged(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	former := o.objects["one"].DeepCopy()
	delete(o.objects, "one")
	stranger := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "ns"}}}
	o.save(stranger, "another")
	former.SetManagedFields(nil) // the watch shows only that another client has changed it
	former.SetResourceVersion("150")
	o.show(former)
	got, err := o.step(t)
	if !reflect.DeepEqual(got, []string{"apply one", "get one"}) {
		t.Errorf("got %v", got)
	}
	var refused *convergence.NotOursError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func TestDeletedChildIsCreatedAgain(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	called := 0
	defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
	expect(t, o, "apply one")
	o.show(o.objects["one"])
	gone := o.objects["one"]
	delete(o.objects, "one")
	o.observe(readFact(gone, "kopf-test"), true)
	if called != 1 {
		t.Errorf("the handler was called %d times", called)
	}
	expect(t, o, "apply one")
}

// A child that was created and deleted while its watch was interrupted appears in no event.
func TestListShowsThatAChildIsGone(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	called := 0
	defer o.Follow(o.owner.Parent.UID, o.owner.Handler, func() { called++ })()
	expect(t, o, "apply one")
	delete(o.objects, "one")
	all := func(Key) bool { return true }
	o.replace(all, nil, "90") // older than the child
	if called != 0 {
		t.Error("a list that is older than the child counts")
	}
	o.replace(all, nil, "900")
	if called != 1 {
		t.Errorf("the handler was called %d times", called)
	}
	expect(t, o, "apply one")
}

func TestForgottenParentNeedsNoMemory(t *testing.T) {
	o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
	expect(t, o, "apply one")
	o.Forget(o.owner.Parent.UID)
	if len(o.states) != 0 || len(o.owners) != 0 {
		t.Error("the state of the parent is left")
	}
}

// Only a child that has drifted is read, and only if a handler decides about it.
func TestDecisionsAboutDriftCostOneRequest(t *testing.T) {
	for name, test := range map[string]struct {
		drift func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error)
		want  []string
	}{
		"nothing decides": {nil, []string{"apply one"}},
		"it is restored": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Restore(), nil
		}, []string{"get one", "apply one"}},
		"it is accepted": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Accept(), nil
		}, []string{"get one", "apply one"}},
		"it is not decided": {func(context.Context, selector.Resource, convergence.Drift) (convergence.Resolution, error) {
			return convergence.Resolution{}, errors.New("no")
		}, []string{"get one"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(&cluster{objects: map[string]*unstructured.Unstructured{}})
			o.drift = test.drift
			expect(t, o, "apply one")
			changed := o.objects["one"].DeepCopy()
			changed.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kopf-test", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{},"f:annotations":{},"f:ownerReferences":{}}}`)},
				{Manager: "another", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
			})
			changed.SetResourceVersion("150")
			o.objects["one"] = changed
			o.show(changed)
			if got, _ := o.step(t); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
