package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The traces of an operator on an object.
const (
	prefix      = "kopf.zalando.org/"
	lastHandled = prefix + "last-handled-configuration"
	finalizer   = prefix + "KopfFinalizerMarker"
)

// beHandled matches an object at rest: its current state was handled, and no handler has a
// record.
func beHandled() types.GomegaMatcher {
	return gomega.SatisfyAll(gomega.WithTransform(traces, gomega.ConsistOf(lastHandled)), gomega.Satisfy(isHandled))
}

// haveNoTraces matches an object without annotations of an operator.
func haveNoTraces() types.GomegaMatcher { return gomega.WithTransform(traces, gomega.BeEmpty()) }

func traces(object *unstructured.Unstructured) []string {
	return slices.Collect(func(yield func(string) bool) {
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, prefix) && !yield(key) {
				return
			}
		}
	})
}

func isHandled(object *unstructured.Unstructured) bool {
	var base struct {
		Spec     map[string]any
		Metadata struct{ Labels map[string]string }
	}
	_ = json.Unmarshal([]byte(object.GetAnnotations()[lastHandled]), &base)
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	return equality.Semantic.DeepEqual(base.Spec, spec) && equality.Semantic.DeepEqual(base.Metadata.Labels, object.GetLabels())
}

// ownedBy matches the only owner reference by which Kubernetes would delete an object together
// with its owner.
func ownedBy(owner *unstructured.Unstructured) types.GomegaMatcher {
	yes := true
	return gomega.WithTransform(client.Object.GetOwnerReferences, gomega.ConsistOf(metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}))
}

// get returns a function that reads a typed object.
func get[T any, P interface {
	*T
	client.Object
}](t testing.TB, namespace, name string) func() (P, error) {
	return func() (P, error) {
		var object P = new(T)
		err := cluster.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
		return object, err
	}
}
