package virtual

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// oneOrTwo returns one child if the size of the object is 0, and two otherwise.
func oneOrTwo(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	all := []client.Object{themeNamed("one"), themeNamed("two")}
	if size, _ := c.Spec().Int64("size"); size == 0 {
		all = all[:1]
	}
	return all, nil
}

// After a restart, the operator does not know which children exist until it has listed them.
func TestNothingIsDeletedWithoutACompleteList(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, oneOrTwo, kopf.ID("children"), kopf.Backoff(time.Minute))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role allows it"))
		lists := h.Fail(kopftest.Requests{Verb: "list", Resource: "configmaps"}, 0, forbidden)
		watches := h.Fail(kopftest.Requests{Verb: "watch", Resource: "configmaps"}, 0, forbidden)
		h.Restart()
		before := len(h.Writes())
		h.Patch(one, `{"spec": {"size": 0}}`)
		h.Advance(10 * time.Minute)
		if !h.Exists(themeNamed("two")) || writesTo(h, "one", before) > 0 {
			t.Errorf("got the writes %v", h.Writes()[before:])
		}
		told := messages(h, "HandlerRetrying")
		if len(told) == 0 || !strings.Contains(told[0], "the children of the kind ConfigMap cannot be watched, so none was changed: ") || !strings.Contains(told[0], "no role allows it") {
			t.Errorf("got the events %q", told)
		}
		lists.End()
		watches.End()
		h.Advance(10 * time.Minute)
		if h.Exists(themeNamed("two")) || !h.Exists(themeNamed("one")) {
			t.Error("the children are not what the handler wants")
		}
	})
}

// A replica that has not learned of the last change yet, or a request that arrives late, creates a child after the
// operator has deleted it.
func TestAChildThatIsCreatedAfterItsDeletionIsDeleted(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, oneOrTwo, kopf.ID("children"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		late := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		late.SetNamespace("default")
		late.SetName("two")
		h.Get(late)
		h.Patch(one, `{"spec": {"size": 0}}`)
		h.Advance(time.Minute)
		if h.Exists(themeNamed("two")) {
			t.Fatal("the child was not deleted")
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(late.Object, "metadata", field)
		}
		calls, writes := len(h.Calls("children")), len(h.Writes())
		if err := h.Client().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(late), client.FieldOwner("example.com")); err != nil {
			t.Fatal(err)
		}
		h.Advance(time.Hour)
		if h.Exists(themeNamed("two")) || !h.Exists(themeNamed("one")) {
			t.Error("the children are not what the function returns")
		}
		if calls, writes = len(h.Calls("children"))-calls, len(h.Writes())-writes; calls != 1 || writes != 1 {
			t.Errorf("got %d calls and %d writes, want the one that deletes the child", calls, writes)
		}
	})
}
