package ensure

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// families is the number of parents with five children each. The benchmarks have more of them.
var families = flag.Int("families", 200, "number of parents in the test of them")

// headless returns the family of a shop without an address, of which the API server has few.
func headless(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
	all, err := children(ctx, c)
	for _, child := range all {
		if u, ok := child.(*unstructured.Unstructured); ok && u.GetKind() == "Service" {
			err = unstructured.SetNestedField(u.Object, "None", "spec", "clusterIP")
		}
	}
	return all, err
}

// each calls the function for all families, several at a time.
func (b *bench) each(do func(shop string) error) {
	b.t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range *families {
		group.Go(func() error { return do(fmt.Sprint("shop-", i)) })
	}
	b.Expect(group.Wait()).To(gomega.Succeed())
}

// eventuallyAll waits until so many objects of a kind as there are families meet the condition.
func (b *bench) eventuallyAll(kind schema.GroupVersionKind, condition func(u *unstructured.Unstructured) bool) {
	b.t.Helper()
	b.Eventually(func() (met int, err error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err = cluster.Client().List(b.t.Context(), list, client.InNamespace(b.namespace))
		for i := range list.Items {
			if condition(&list.Items[i]) {
				met++
			}
		}
		return met, err
	}).WithTimeout(10 * time.Minute).WithPolling(500 * time.Millisecond).Should(gomega.Equal(*families))
	b.expectRest()
}

// expectRequests compares all requests since the last call with those expected, except for those
// that do not depend on the number of objects, which are logged: lists and watches, discovery, and
// the questions of the start.
func (b *bench) expectRequests(when string, want testenv.Snapshot) {
	b.t.Helper()
	got, apart := b.requests.Snapshot(), testenv.Snapshot{}
	for key, number := range got {
		if slices.Contains([]string{"", "selfsubjectaccessreviews"}, key.Target) || slices.Contains([]string{testenv.MethodList, testenv.MethodWatch}, key.Method) {
			apart[key] = number
			delete(got, key)
		}
	}
	b.t.Logf("%s: %v; apart: %v", when, got, apart)
	b.Expect(got).To(gomega.Equal(want), when)
	delete(apart, testenv.Key{Method: http.MethodGet}) // discovery: the longer the test, the more
	for key, number := range apart {
		b.Expect(number).To(gomega.BeNumerically("<", 20), "%s: %v", when, key)
	}
	b.requests.Reset()
}

// The API server writes quantities, defaults, and passwords in another way than the operator: a
// restart asks for nothing about children nevertheless.
func TestManyFamiliesAreCreatedRestoredAndFoundAgain(t *testing.T) {
	b := newBench(t)
	declare := func(r *kopf.Registry) { r.Ensure(shops, b.counted(headless), kopf.ID("children")) }
	declare(b.Registry)
	operator := b.start()
	n := *families
	b.each(func(shop string) error {
		return cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", b.namespace, shop, map[string]any{"replicas": int64(1)}))
	})
	b.eventuallyAll(shopKind, func(u *unstructured.Unstructured) bool {
		_, handled := u.GetAnnotations()[prefix+"last-handled-configuration"]
		_, open := u.GetAnnotations()[prefix+"children"]
		return handled && !open
	})
	creation := testenv.Snapshot{{Method: http.MethodPatch, Target: "kopfexamples"}: 2 * n} // the places, and the end
	for _, resource := range []string{"configmaps", "deployments", "persistentvolumeclaims", "secrets", "services"} {
		creation[testenv.Key{Method: http.MethodPatch, Target: resource}] = n
	}
	b.expectRequests("creation", creation)

	b.each(func(shop string) error {
		theme := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"theme":"light"}}`))
		return cluster.Client().Patch(t.Context(), b.of(configMaps, shop), theme, client.FieldOwner("kubectl"))
	})
	b.eventuallyAll(configMaps, func(u *unstructured.Unstructured) bool {
		theme, _, _ := unstructured.NestedString(u.Object, "data", "theme")
		return theme == "dark"
	})
	b.expectRequests("a change of a child of each", testenv.Snapshot{{Method: http.MethodPatch, Target: "configmaps"}: n})

	b.calls.Store(0)
	b.restart(operator, declare)
	b.Eventually(b.calls.Load).WithTimeout(time.Minute).Should(gomega.BeEquivalentTo(n))
	b.expectRest()
	b.expectRequests("a restart", testenv.Snapshot{})
	b.stayIdle()
}
