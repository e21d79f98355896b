package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/test/testenv"
)

func testFiltering(t testing.TB, e *example) {
	operator := e.start(t)
	// This object matches nothing yet, and is older than all others.
	stranger := e.variant(t, `{"metadata":{"name":"system-1","labels":null},"spec":{"field":null}}`)

	const fieldless = `{"metadata":{"name":"fieldless","labels":{"somelabel":"sometimes"}},"spec":{"field":null}}`
	tests := map[string]struct {
		object string   // the difference from obj.yaml
		called []string // handlers called for its creation
		change string   // a change of the object
		then   []string // handlers called for the change
	}{
		"the value has changed from one to another": {
			object: `{}`,
			called: []string{"equal", "present", "match", "when", "equal/spec.field"},
			change: `{"spec":{"field":"world"}}`,
			then:   []string{"changed/spec.field", "greeted/spec.field"},
		},
		"the value has changed to something else": {
			object: `{"metadata":{"name":"other","labels":{"somelabel":"other"},"annotations":null},"spec":{"field":"hello"}}`,
			called: []string{"present", "absent", "not", "when", "equal/spec.field"},
			change: `{"spec":{"field":"farewell"}}`,
			then:   []string{"changed/spec.field"},
		},
		"the field was added": {
			object: fieldless,
			called: []string{"present", "match", "not", "none"},
			change: `{"spec":{"field":"new"}}`,
			then:   []string{"changed/spec.field", "added/spec.field"},
		},
		"the field was removed": {
			object: `{"metadata":{"name":"losing","labels":null},"spec":{"field":"unknown"}}`,
			called: []string{"none"},
			change: `{"spec":{"field":null}}`,
			then:   []string{"changed/spec.field", "removed/spec.field"},
		},
		"another field has changed": {
			object: `{"metadata":{"name":"system-2","labels":null},"spec":{"field":"unknown"}}`,
			called: nil,
			change: `{"spec":{"other":"value"}}`,
			then:   nil,
		},
	}
	g := gomega.NewWithT(t)
	for name, test := range tests {
		ginkgo.By(name)
		object := e.variant(t, test.object)
		g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), haveCalled(test.called...)))
		merge(t, object, test.change)
		called := append(slices.Clone(test.called), test.then...)
		g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), haveCalled(called...)))
	}

	// An object that matches no handler has no traces. Once it matches, it is new.
	g.Expect(cluster.Current(stranger)()).To(gomega.SatisfyAll(haveNoTraces(), haveCalled()))
	merge(t, stranger, `{"metadata":{"labels":{"somelabel":"somevalue"}}}`)
	g.Eventually(cluster.Current(stranger)).Should(gomega.SatisfyAll(beHandled(), haveCalled("equal", "present", "match")))

	testFilteredDaemon(t, e, operator)
}

// testFilteredDaemon expects a daemon for each of the times that the field has the value.
func testFilteredDaemon(t testing.TB, e *example, operator *operator) {
	t.Helper()
	const starts, stops = "The daemon starts.", "The daemon stops."
	g := gomega.NewWithT(t)
	said := func(texts ...string) func() int { return func() int { return operator.saidTimes(texts...) } }
	g.Eventually(said(starts, "kopf-example-1")).Should(gomega.Equal(1), "the field was changed to the value")
	g.Expect(operator.saidTimes(starts)).To(gomega.Equal(1), "no other object has had the value")

	object := e.variant(t, `{"metadata":{"name":"followed"},"spec":{"field":"world"}}`)
	g.Eventually(said(starts, "followed")).Should(gomega.Equal(1))
	g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(beHandled(), testenv.HaveFinalizer(finalizer)))
	merge(t, object, `{"spec":{"field":"hello"}}`)
	g.Eventually(said(stops, "followed", `"reason": "mismatch|signaled"`)).Should(gomega.Equal(1))
	g.Eventually(cluster.Current(object)).ShouldNot(testenv.HaveFinalizer(finalizer), "no daemon holds the object")
	merge(t, object, `{"spec":{"field":"world"}}`)
	g.Eventually(said(starts, "followed")).Should(gomega.Equal(2))
	g.Expect(cluster.Client().Delete(t.Context(), object)).To(gomega.Succeed())
	g.Eventually(said(stops, "followed", `"reason": "deleted|signaled"`)).Should(gomega.Equal(1))
	g.Eventually(cluster.Exists(object)).Should(gomega.BeFalse())
}

// variant creates the sample with some differences.
func (e *example) variant(t testing.TB, difference string) *unstructured.Unstructured {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal([]byte(difference), &decoded); err != nil {
		t.Fatal(err)
	}
	return created(t, &unstructured.Unstructured{Object: patch.ApplyMerge(e.sample(t).Object, decoded)})
}

// haveCalled matches an object by the handlers that have written their ids to its status.
func haveCalled(ids ...string) types.GomegaMatcher {
	return gomega.WithTransform(func(object *unstructured.Unstructured) []string {
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		return slices.Collect(maps.Keys(status))
	}, gomega.ConsistOf(ids))
}
