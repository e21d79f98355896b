package handling

import (
	"context"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/testenv"
)

// The steps of docs/storage-transition.md: the state moves from one storage to another without
// calling handlers, even in the middle of a cycle.
func TestStorageTransitionCallsNoHandlers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		base     storage.DiffBase
		progress storage.Progress
		moved    types.GomegaMatcher // an object with the base in its new place
	}{
		"to a custom prefix": {
			storage.AnnotationsDiffBase{Prefix: "my-op.example.com"},
			storage.AnnotationsProgress{Prefix: "my-op.example.com"},
			testenv.HaveAnnotation("my-op.example.com/"+storage.DefaultKey, gomega.ContainSubstring("field")),
		},
		"to the status": {
			storage.StatusDiffBase{},
			storage.StatusProgress{},
			testenv.HavePath("status.kopf."+storage.DefaultKey, gomega.ContainSubstring("field")),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.OnCreate(examples, b.noted("done", succeed), kopf.ID("done"))
			b.OnCreate(examples, b.noted("slow", func(_ context.Context, c *kopf.Change) error {
				if c.Name() == "half" && c.Retry() == 0 {
					return kopf.Temporary(errNotYet, time.Second)
				}
				return nil
			}), kopf.ID("slow"))
			b.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
				b.calls.Note("update %s->%s", c.Old(), c.New())
				return nil
			}, kopf.ID("update"), kopf.Field("spec.field")) // ignores changes of labels

			// Before: one object is handled completely, the other one only in part.
			operator := b.start()
			whole, half := b.create("whole", map[string]any{"field": "1"}), b.create("half", map[string]any{"field": "1"})
			b.expectHandled(whole)
			b.Eventually(cluster.Current(half)).Should(testenv.HaveAnnotation(prefix+"slow", gomega.ContainSubstring("not yet")))
			operator.Stop()
			b.setField(half, "2") // the open cycle does not include this change

			// During: both storages, the new one first.
			operator = b.start(func(o *kopf.Options) {
				o.Settings.Persistence.DiffBase = storage.MultiDiffBase{test.base, storage.AnnotationsDiffBase{}}
				o.Settings.Persistence.Progress = storage.MultiProgress{test.progress, storage.SmartProgress{}}
			})
			b.expectHandled(half)
			calls := []string{"done 0", "done 0", "slow 0", "slow 0", "slow 1", "update 1->2"}
			b.Expect(b.calls.All()).To(gomega.ConsistOf(calls))
			b.patch(whole, `{"metadata":{"labels":{"storage":"moved"}}}`) // triggers a write of its base
			for _, obj := range []*unstructured.Unstructured{whole, half} {
				b.Eventually(cluster.Current(obj)).Should(test.moved)
			}
			operator.Stop()

			// After: only the new storage. The data of the old one is ignored.
			only := func(o *kopf.Options) {
				o.Settings.Persistence.DiffBase, o.Settings.Persistence.Progress = test.base, test.progress
			}
			b.requests.Reset()
			b.start(only)
			b.expectRest()
			for _, obj := range []*unstructured.Unstructured{whole, half} {
				b.patch(obj, `{"metadata":{"annotations":{"`+handled+`":null}}}`)
			}
			b.expectRest()
			b.Expect(b.calls.All()).To(gomega.HaveLen(len(calls)))
			b.Expect(b.requests.Snapshot().Writes("kopfexamples")).To(gomega.BeZero(), b.requests.String())
			b.setField(whole, "3")
			b.Eventually(b.calls.All).Should(gomega.ConsistOf(append(calls, "update 1->3")))
		})
	}
}
