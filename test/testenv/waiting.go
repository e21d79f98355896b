package testenv

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Current reads the object each time it is polled:
//
//	g.Eventually(cluster.Current(obj)).Should(testenv.HavePath("status.createFn", "done"))
//
// It uses only the identity of the given object, and does not change it.
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

// Exists reports each time it is polled whether the object still exists:
//
//	g.Eventually(cluster.Exists(obj)).Should(gomega.BeFalse())
func (c *Cluster) Exists(object *unstructured.Unstructured) func() (bool, error) {
	current := c.Current(object)
	return func() (bool, error) {
		_, err := current()
		return err == nil, client.IgnoreNotFound(err)
	}
}

// IsNotFound matches the error of reading an object that does not exist.
func IsNotFound() types.GomegaMatcher {
	return gomega.WithTransform(apierrors.IsNotFound, gomega.BeTrue())
}

// HavePath matches an object by the value at a dotted path, such as "status.field". The
// expectation is a value, a matcher, or nil for a missing value.
func HavePath(path string, expected any) types.GomegaMatcher {
	return gomega.WithTransform(func(object *unstructured.Unstructured) (any, error) {
		if object == nil {
			return nil, fmt.Errorf("no object in which to find %s", path)
		}
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		return value, err
	}, matcher(expected))
}

// HaveAnnotation matches an object by one of its annotations. The expectation is a
// value, a matcher for a string, or nil for a missing annotation.
func HaveAnnotation(key string, expected any) types.GomegaMatcher {
	return gomega.WithTransform(func(object *unstructured.Unstructured) any {
		if value, found := object.GetAnnotations()[key]; found {
			return value
		}
		return nil
	}, matcher(expected))
}

// HaveFinalizer matches an object that has the finalizer, and possibly others.
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

// restRounds is how often the API server must answer without anything happening.
const restRounds = 15

// AtRest reports each time it is polled whether the operators have nothing left to do: whether
// none of their requests is under way, and their number has stayed the same. It counts answers of
// the API server instead of time, because a machine with other work makes everybody pause.
//
//	g.Eventually(cluster.AtRest(requests)).Should(gomega.BeTrue())
func (c *Cluster) AtRest(requests *CountingTransport) func() (bool, error) {
	last, rounds := -1, 0
	return func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := c.late.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err != nil {
			return false, err
		}
		now, underWay := requests.activity()
		if now != last || underWay > 0 {
			last, rounds = now, 0
		}
		rounds++
		return rounds > restRounds, nil
	}
}
