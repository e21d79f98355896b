package testenv

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Current reads the object again each time it is polled:
//
//	g.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.createFn", "done"))
//
// Only the identity of the given object is used; it is not changed.
func (c *Cluster) Current(object *unstructured.Unstructured) func() (*unstructured.Unstructured, error) {
	kind, key := object.GroupVersionKind(), client.ObjectKeyFromObject(object)
	return func() (*unstructured.Unstructured, error) {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(kind)
		if err := c.client.Get(ctx, key, current); err != nil {
			return nil, err
		}
		return current, nil
	}
}

// Exists tells each time it is polled whether the object is still there:
//
//	g.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse())
func (c *Cluster) Exists(object *unstructured.Unstructured) func() (bool, error) {
	current := c.Current(object)
	return func() (bool, error) {
		_, err := current()
		return err == nil, client.IgnoreNotFound(err)
	}
}

// IsNotFound matches the error of a read of an object that is gone.
func IsNotFound() types.GomegaMatcher {
	return gomega.WithTransform(apierrors.IsNotFound, gomega.BeTrue())
}

// HavePath matches an object by the value at a dotted path, as in "status.field";
// nil is a value that is not there. The expectation is a value or a matcher.
func HavePath(path string, expected any) types.GomegaMatcher {
	return gomega.WithTransform(func(object *unstructured.Unstructured) (any, error) {
		if object == nil {
			return nil, fmt.Errorf("no object to look for %s in", path)
		}
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		return value, err
	}, matcher(expected))
}

// HaveAnnotation matches an object by one of its annotations. The expectation is
// a value, a matcher of a string, or nil for an annotation that is not there.
func HaveAnnotation(key string, expected any) types.GomegaMatcher {
	return gomega.WithTransform(func(object *unstructured.Unstructured) any {
		if value, found := object.GetAnnotations()[key]; found {
			return value
		}
		return nil
	}, matcher(expected))
}

// HaveFinalizer matches an object that has the finalizer, among others or not.
func HaveFinalizer(name string) types.GomegaMatcher {
	return gomega.WithTransform((*unstructured.Unstructured).GetFinalizers, gomega.ContainElement(name))
}

func matcher(expected any) types.GomegaMatcher {
	switch expected := expected.(type) {
	case types.GomegaMatcher:
		return expected
	case nil:
		return gomega.BeNil()
	default:
		return gomega.Equal(expected)
	}
}
