package virtual

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// theme returns one config map with the color of the object.
func theme(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	color, _ := c.Spec().String("color")
	wanted := newTheme()
	wanted.Data = map[string]string{"color": color, "font": "serif"}
	return []client.Object{wanted}, nil
}

// The status has the result of the handler of the last cycle. A restoration stores nothing.
func TestRestorationStoresNoResult(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			c.SetResult(map[string]any{"theme": c.Name()})
			return theme(ctx, c)
		}, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		before := len(h.Writes())
		h.Patch(newTheme(), `{"data": {"color": "red"}}`)
		h.Advance(time.Minute)
		restored := newTheme()
		if h.Get(restored); restored.Data["color"] != "blue" {
			t.Errorf("the theme has %v", restored.Data)
		}
		if writes := h.Writes()[before:]; len(writes) != 1 {
			t.Errorf("got the writes %v", writes)
		}
		h.Get(one)
		status, _, _ := unstructured.NestedMap(one.Object, "status")
		if got := slices.Sorted(maps.Keys(status)); !slices.Equal(got, []string{"children"}) {
			t.Errorf("the status has %v", status)
		}
	})
}
