package virtual

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Changes become one difference until the object is idle. Nothing is written meanwhile, and handlers that do not wait
// are called at once.
func TestHandlersWaitUntilTheirObjectIsIdle(t *testing.T) {
	var began time.Time
	var calls []string
	call := func(id string) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			before, _ := c.Old().View().Int64("spec", "size")
			size, _ := c.New().View().Int64("spec", "size")
			calls = append(calls, fmt.Sprintf("%gs %s %s %d %d", time.Since(began).Seconds(), id, c.Reason(), before, size))
			return nil
		}
	}
	withOperator(t, func(r *kopf.Registry) {
		idle := call("idle")
		r.OnCreate(examples, idle, kopf.ID("idle"), kopf.Idle(10*time.Second))
		r.OnUpdate(examples, idle, kopf.ID("idle"), kopf.Idle(10*time.Second))
		r.OnUpdate(examples, call("busy"), kopf.ID("busy"))
	}, func(t *testing.T, h *kopftest.Harness) {
		began = time.Now()
		one := newExample()
		h.Create(one)
		change := func(second int, size int) {
			h.Advance(time.Until(began.Add(time.Duration(second) * time.Second)))
			h.Patch(one, fmt.Sprintf(`{"spec":{"size":%d}}`, size))
		}
		change(3, 4)
		change(5, 5)
		change(30, 6)
		change(35, 7)
		change(50, 8)
		change(55, 7) // taken back
		h.Advance(time.Until(began.Add(100 * time.Second)))
		want := []string{
			"15s idle create 0 5",
			"30s busy update 5 6", "45s idle update 5 7", "45s busy update 6 7",
			"50s busy update 7 8", "55s busy update 8 7", // nothing has changed for the one that waits
		}
		if !slices.Equal(calls, want) {
			t.Errorf("got %q, want %q", calls, want)
		}
		h.Restart()
		change(110, 9)
		h.Advance(time.Until(began.Add(115 * time.Second)))
		h.Crash() // the time begins anew
		calls = nil
		h.Advance(time.Minute)
		if want := []string{"125s idle update 7 9"}; !slices.Equal(calls, want) {
			t.Errorf("got %q", calls)
		}
	})
}

// A function of children waits for the first quiet of its object. It does not wait when an operator starts, or when the
// object is deleted.
func TestOnlyChangesWaitUntilTheirObjectIsIdle(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.Ensure(examples, theme, kopf.ID("children"), kopf.Idle(time.Hour))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		if h.Exists(newTheme()) {
			t.Error("the child is created before the object is idle")
		}
		h.Advance(time.Hour)
		h.Stop()
		h.Delete(newTheme())
		h.Start()
		h.Advance(time.Minute)
		if !h.Exists(newTheme()) {
			t.Error("the child is not created when the operator starts")
		}
		h.Delete(one)
		h.Advance(time.Minute)
		if h.Exists(one) {
			t.Error("the deletion waits")
		}
	})
}
