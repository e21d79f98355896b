package virtual

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A child is restored for a state of its object that no handler has seen yet, because another one is retried. The
// change is taken back before they see it, so the child must be what the object says again.
func TestARestorationIsRepeatedIfTheChangeIsTakenBack(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
			size, _ := c.Body().Spec().Int64("size")
			child := newTheme()
			child.Data = map[string]string{"size": fmt.Sprint(size)}
			return []client.Object{child}, nil
		}, kopf.ID("family"))
		r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
			if c.Runtime() < time.Hour {
				return kopf.Temporary(errors.New("not yet"), time.Hour)
			}
			return nil
		}, kopf.ID("last"))
	}, func(t *testing.T, h *kopftest.Harness) {
		expect := func(what, want string) {
			t.Helper()
			h.Settle()
			child := newTheme()
			if h.Get(child); child.Data["size"] != want {
				t.Errorf("%s: got %v, want %s", what, child.Data, want)
			}
		}
		one := newExample()
		h.Create(one)
		expect("after the creation", "3")
		h.Patch(one, `{"spec":{"size":4}}`)
		expect("after the change", "4")
		h.Patch(one, `{"spec":{"size":5}}`)
		h.Settle() // the restoration is for what the operator knows
		h.Patch(newTheme(), `{"data":{"size":"another"}}`)
		expect("after the restoration", "5")
		h.Patch(one, `{"spec":{"size":4}}`)
		h.Advance(3 * time.Hour)
		expect("at the end", "4")
		h.Patch(newTheme(), `{"data":{"size":"another"}}`)
		expect("after a restoration that is not ahead", "4")
		restored := len(h.Calls("family"))
		h.Advance(time.Hour)
		if more := len(h.Calls("family")) - restored; more > 0 {
			t.Errorf("the handler is called %d times at rest", more)
		}
	})
}
