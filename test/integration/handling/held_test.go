package handling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestFailedDeletionReleasesTheObject(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnDelete(examples, b.noted("delete", fail(kopf.Permanent(errBroken))), kopf.ID("delete"))
	b.start()
	obj := b.create("one", nil)
	b.expectHandled(obj)
	b.remove(obj)
	b.expectGone(obj)
	b.Expect(b.calls.All()).To(gomega.Equal(attempts("delete", 1)))
	b.Eventually(cluster.Events(obj)).Should(gomega.ContainElement("Warning HandlerFailed: Handler delete failed permanently: broken"))
}

func strict(b *bench, spec map[string]any) *unstructured.Unstructured {
	obj := testenv.NewObject("Strict", b.namespace, "one", spec)
	obj.SetAPIVersion("one.example.com/v1")
	return obj
}

// conditionOf returns the condition of the type, as "True HandlerFailed".
func conditionOf(obj *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		if condition, _ := item.(map[string]any); condition["type"] == kind {
			return fmt.Sprint(condition["status"], " ", condition["reason"])
		}
	}
	return ""
}

func TestFailedDeletionHoldsTheObjectIfDeclared(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		selector  kopf.Selector
		kind      string
		condition string
	}{
		"with a condition":                        {examples, "KopfExample", "True HandlerFailed"},
		"with a condition outside a subresource":  {noStatuses, "KopfNoStatus", "True HandlerFailed"},
		"without a condition that is pruned":      {pruneds, "KopfPruned", ""},
		"without a condition that is not allowed": {kopf.Resource("one.example.com", "stricts"), "Strict", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			repaired := make(chan struct{})
			b.OnDelete(test.selector, b.noted("delete", unless(repaired, kopf.Permanent(errBroken))), kopf.ID("delete"), kopf.HoldOnFailure())
			b.OnDelete(test.selector, b.noted("other", succeed), kopf.ID("other"))
			operator := b.start()
			obj := testenv.NewObject(test.kind, b.namespace, "one", nil)
			if test.kind == "Strict" {
				obj = strict(b, nil)
			}
			b.submit(obj)
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveFinalizer(finalizer))
			b.remove(obj)
			b.Eventually(cluster.Current(obj)).Should(testenv.HaveAnnotation(prefix+"delete", gomega.ContainSubstring(`"failure":true`)))
			b.expectRest()
			b.Expect(conditionOf(b.current(obj), "DeletionHeld")).To(gomega.Equal(test.condition))
			b.Eventually(b.heldEvents(obj)).Should(gomega.HaveLen(1))
			b.Eventually(b.logged("The deletion is held", finalizer)).Should(gomega.HaveLen(1))
			b.Expect(b.logs.With("the handler has failed")).To(gomega.BeEmpty())
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"delete 0", "other 0"}))

			// Nothing is reported or done again, neither after a change nor after a restart.
			version := b.current(obj).GetResourceVersion()
			operator.Stop()
			b.start()
			b.expectRest()
			b.Expect(b.current(obj).GetResourceVersion()).To(gomega.Equal(version))
			b.patch(obj, `{"metadata":{"labels":{"seen":"yes"}}}`)
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.HaveLen(2))

			// A person resolves the problem.
			close(repaired)
			b.patch(obj, `{"metadata":{"annotations":{"`+prefix+`delete":null}}}`)
			b.expectGone(obj)
			b.Expect(b.calls.All()).To(gomega.Equal([]string{"delete 0", "other 0", "delete 0"}))
		})
	}
}

func (b *bench) heldEvents(obj *unstructured.Unstructured) func() ([]string, error) {
	return func() ([]string, error) {
		events, err := cluster.Events(obj)()
		var held []string
		for _, event := range events {
			if strings.HasPrefix(event, "Warning DeletionHeld: The deletion is held because handler delete failed permanently: broken.") {
				held = append(held, event)
			}
		}
		return held, err
	}
}
