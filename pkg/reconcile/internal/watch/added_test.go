package watch

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// A resource that is watched already must not be listed again because of another selector.
func TestAddedSelectorsLeaveDeclaredResourcesAsTheyAre(t *testing.T) {
	declared := selector.New("kopfexamples")
	same, other := selector.New("kopf.dev", "kopfexamples"), selector.New("v1", "pods")
	w := New(Config{Selectors: []selector.Selector{declared}})
	for range 2 {
		w.Added.Add(same)
		w.Added.Add(other)
	}
	if len(w.Added.selectors) != 2 || len(w.Added.changed) != 1 {
		t.Errorf("got %v, %d signals", w.Added.selectors, len(w.Added.changed))
	}
	verbs := []string{"list", "watch", "patch"}
	example, pods := kex.Resource, selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Preferred: true, Verbs: verbs}
	example.Preferred, example.Verbs = true, verbs
	got := w.Added.resolve(w.Selectors, discovery.Snapshot{Resources: []selector.Resource{example, pods}})
	if len(got.Resources) != 2 || len(got.Warnings) > 0 {
		t.Fatalf("got %+v", got)
	}
	for i, want := range [][]selector.Selector{{declared}, {other}} {
		if !slices.Equal(got.Resources[i].Selectors, want) {
			t.Errorf("got %v for %s", got.Resources[i].Selectors, got.Resources[i])
		}
	}
}
