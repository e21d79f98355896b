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

// The results of resume handlers are only in the memory of a process: each process calls those that its predecessor may
// have called in the cycle that it has left open, and none twice.
func TestResumeHandlersOfAnUnfinishedCycleAreCalledOnceByEachProcess(t *testing.T) {
	change := func(h *kopftest.Harness) { h.Patch(newExample(), `{"spec":{"size":4}}`) }
	tests := map[string]struct {
		before          func(h *kopftest.Harness) // the last process begins
		updates, resume int                       // the calls
	}{
		"the predecessor has called it": {func(h *kopftest.Harness) {
			h.Stop()
			change(h)
			h.Start()
		}, 2, 2},
		"the predecessor has not called it":        {change, 2, 1},
		"there is no unfinished cycle":             {func(*kopftest.Harness) {}, 0, 1},
		"the predecessor of the predecessor began": {func(h *kopftest.Harness) { change(h); h.Advance(time.Minute); h.Crash() }, 2, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			withOperator(t, func(r *kopf.Registry) {
				r.OnUpdate(examples, once, kopf.ID("update"))
				r.OnResume(examples, ignore, kopf.ID("resume"))
			}, func(t *testing.T, h *kopftest.Harness) {
				h.Create(newExample())
				h.Advance(time.Minute)
				test.before(h)
				h.Advance(time.Minute)
				h.Crash()
				h.Advance(3 * time.Hour)
				if updates, resumed := h.Calls("update"), h.Calls("resume"); len(updates) != test.updates || len(resumed) != test.resume {
					t.Errorf("got %v and %v", updates, resumed)
				}
				h.Patch(newExample(), `{"spec":{"size":5}}`)
				h.Advance(3 * time.Hour)
				if resumed := h.Calls("resume"); len(resumed) != test.resume {
					t.Errorf("after a later change: got %v", resumed)
				}
			})
		})
	}
}

// Resume handlers take part in the change that supersedes a resumption. What has ended there is not called again.
func TestResumeHandlersThatHaveEndedAreNotCalledForTheNextChange(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnResume(examples, ignore, kopf.ID("quick"))
		r.OnResume(examples, once, kopf.ID("retried"))
		r.OnUpdate(examples, ignore, kopf.ID("update"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		h.Restart()
		h.Advance(time.Minute)
		h.Patch(newExample(), `{"spec":{"size":4}}`)
		h.Advance(3 * time.Hour)
		if quick, retried, updated := h.Calls("quick"), h.Calls("retried"), h.Calls("update"); len(quick) != 1 || len(retried) != 2 || len(updated) != 1 {
			t.Errorf("got %v, %v, and %v", quick, retried, updated)
		}
	})
}

// A copy brings the annotations of its original. It is not older than the process, which resumes only such objects.
func TestCopyOfAHandledObjectIsNotResumed(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"))
		r.OnResume(examples, ignore, kopf.ID("resume"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Get(one)
		h.Create(copyOf(one, "two"))
		h.Advance(time.Minute)
		if created, resumed := calledFor(h, "create"), h.Calls("resume"); len(created) != 1 || len(resumed) > 0 {
			t.Errorf("created are %q, and %v", created, resumed)
		}
		h.Restart()
		h.Advance(time.Minute)
		if resumed := calledFor(h, "resume"); len(resumed) != 2 {
			t.Errorf("after a restart, resumed are %q", resumed)
		}
	})
}
