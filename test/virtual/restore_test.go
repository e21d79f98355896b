package virtual

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// The change that a restoration could not undo is no new one. After the last attempt, the handler is
// called when the child changes again.
func TestRestorationThatFailsForGoodIsNotRepeated(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"), kopf.Retries(3), kopf.Backoff(time.Second))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		refusals := h.Fail(kopftest.Requests{Verb: "patch", Resource: "configmaps"}, 0, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "theme", errors.New("exceeded quota")))
		h.Patch(newTheme(), `{"data": {"color": "red"}}`)
		h.Advance(time.Hour)
		if refusals.Count() != 3 {
			t.Errorf("got %d attempts", refusals.Count())
		}
		refusals.End()
		h.Patch(newTheme(), `{"data": {"font": "mono"}}`)
		h.Advance(time.Minute)
		restored := newTheme()
		if h.Get(restored); restored.Data["color"] != "blue" || restored.Data["font"] != "serif" {
			t.Errorf("got %v", restored.Data)
		}
	})
}
