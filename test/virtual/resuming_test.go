package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A process dies in a cycle in which its handlers have ended at different states. The next one finishes that cycle, and
// another one after it, in which a handler has ended already. Nevertheless, it resumes the object.
func TestAResumeHandlerIsCalledAfterCyclesOfAnEarlierProcess(t *testing.T) {
	size := func(c *kopf.Change) int64 {
		value, _ := c.Body().Spec().Int64("size")
		return value
	}
	fails := func(isEarly func(size int64) bool) func(context.Context, *kopf.Change) error {
		return func(_ context.Context, c *kopf.Change) error {
			if isEarly(size(c)) {
				return kopf.Temporary(errors.New("not yet"), time.Minute)
			}
			return nil
		}
	}
	crashed, resumed := false, 0
	resume := func(ctx context.Context, c *kopf.Change) error {
		if c.Reason() == kopf.ReasonResume {
			resumed++
		}
		return fails(func(size int64) bool { return size == 4 })(ctx, c)
	}
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, fails(func(int64) bool { return false }), kopf.ID("first"))
		r.OnUpdate(examples, resume, kopf.ID("resume"))
		r.OnResume(examples, resume, kopf.ID("resume"))
		r.OnUpdate(examples, fails(func(int64) bool { return !crashed }), kopf.ID("last"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		h.Patch(one, `{"spec":{"size":4}}`) // first ends here
		h.Settle()
		h.Patch(one, `{"spec":{"size":5}}`) // resume ends here, and last nowhere
		h.Advance(2 * time.Minute)
		crashed = true
		h.Crash()
		h.Advance(time.Hour)
		if resumed != 1 {
			t.Errorf("it was resumed %d times: %v", resumed, h.Calls("resume"))
		}
		if got := h.Calls("first"); len(got) != 2 {
			t.Errorf("first has not seen both changes: %v", got)
		}
	})
}
