package virtual

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// The child of a deleted parent is left to the garbage collector also if a parent of its name exists again.
func TestAChildOfADeletedParentIsCreatedAgainWhenItIsCollected(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) {
			theme := newTheme()
			theme.Data = map[string]string{"color": "blue"}
			return []client.Object{theme}, nil
		}, kopf.ID("shop"))
	}, func(t *testing.T, h *kopftest.Harness) {
		former, child := newExample(), newTheme()
		h.Create(former)
		h.Advance(time.Minute)
		h.Delete(former)
		h.Advance(time.Minute)
		parent := newExample()
		h.Create(parent)
		h.Advance(5 * time.Minute)
		told := messages(h, "HandlerRetrying")
		if h.Get(child); child.OwnerReferences[0].UID != former.GetUID() || len(told) == 0 ||
			!strings.Contains(told[0], "the object belongs to a former parent of this name, KopfExample.kopf.dev one (uid ") || !strings.HasSuffix(told[0], "delete it yourself: kubectl delete configmaps theme -n default") {
			t.Errorf("got %v after %q", child.OwnerReferences, told)
		}
		h.CollectGarbage()
		h.Advance(5 * time.Minute)
		if h.Get(child); child.OwnerReferences[0].UID != parent.GetUID() {
			t.Errorf("got %v", child.OwnerReferences)
		}
	})
}
