package virtual

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/lifecycles"
)

// once fails for an hour.
func once(_ context.Context, c *kopf.Change) error {
	if c.Retry() == 0 {
		return kopf.Temporary(errors.New("not yet"), time.Hour)
	}
	return nil
}

// awaited declares two handlers that wait for an hour: the second one for a sub-handler of its
// sub-handler.
func awaited(r *kopf.Registry) {
	r.OnCreate(examples, once, kopf.ID("first"))
	r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
		c.Subhandler("group", func(_ context.Context, c *kopf.Change) error {
			c.Subhandler("alice", once)
			return nil
		})
		return nil
	}, kopf.ID("users"))
}

// A parent waits as long as its sub-handlers. When a request ends the wait of the last one, there
// is nothing that the parent could wait for.
func TestARequestForASubhandlerWakesItsParents(t *testing.T) {
	const last = "users/group/alice"
	for lifecycle, choose := range map[string]lifecycles.Lifecycle{"all at once": lifecycles.AllAtOnce, "one by one": lifecycles.OneByOne} {
		for verb, test := range map[string]struct {
			requests string
			attempts int
		}{
			"retry": {`{"kopf.zalando.org/request-retry":"1 first ` + last + `"}`, 2},
			"skip":  {`{"kopf.zalando.org/request-retry":"1 first","kopf.zalando.org/request-skip":"1 ` + last + `"}`, 1},
		} {
			t.Run(verb+" "+lifecycle, func(t *testing.T) {
				withOperator(t, awaited, func(t *testing.T, h *kopftest.Harness) {
					one := newExample()
					h.Create(one)
					h.Advance(time.Minute)
					h.Patch(one, `{"metadata":{"annotations":`+test.requests+`}}`)
					h.Advance(time.Second)
					if got := h.Calls(last); len(got) != test.attempts {
						t.Errorf("got %v, want %d", got, test.attempts)
					}
					if got := h.Calls("users"); len(got) != 2 || got[1].Err != nil {
						t.Errorf("got %v", got)
					}
					isEnd := func(l kopftest.Log) bool { return l.Message == "The creation is processed: 4 succeeded; 0 failed." }
					if !slices.ContainsFunc(h.Logs(), isEnd) {
						t.Errorf("it is not processed: %v", h.Logs())
					}
				}, kopftest.Settings(func(s *kopf.Settings) { s.Execution.Lifecycle = choose }))
			})
		}
	}
}

// A handler is rerun, and retried. A request to rerun another one does not end that.
func TestARerunIsRetriedAfterAnotherRequest(t *testing.T) {
	calls := 0
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error {
			if calls++; calls == 2 || calls == 3 { // both are reruns
				return kopf.Temporary(errors.New("not yet"), time.Minute)
			}
			return nil
		}, kopf.ID("first"))
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("second"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Settle()
		for _, request := range []string{"1 first", "2 second", "3 second"} {
			h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"`+request+`"}}}`)
			h.Advance(time.Second)
		}
		h.Advance(time.Hour)
		if calls != 4 {
			t.Errorf("got %d calls", calls)
		}
		h.Get(one)
		if record, exists := one.GetAnnotations()["kopf.zalando.org/first"]; exists {
			t.Errorf("the record is left over: %s", record)
		}
	})
}

// A sub-handler that has ended runs again, although its parent waits for another one.
func TestASubhandlerIsRerunWhileItsParentWaits(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			c.Subhandler("alice", once)
			c.Subhandler("bob", func(context.Context, *kopf.Change) error { return nil })
			return nil
		}, kopf.ID("users"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-rerun":"1 users/bob"}}}`)
		h.Advance(time.Minute)
		if got := h.Calls("users/bob"); len(got) != 2 || got[1].Attempt != 1 {
			t.Errorf("got %v", got)
		}
		h.Advance(time.Hour)
		if got := h.Calls("users/alice"); len(got) != 2 || got[1].At.Sub(got[0].At) != time.Hour {
			t.Errorf("got %v", got)
		}
	})
}

// An object is suspended when the operator starts, in the middle of its creation. Its resume
// handlers are called as for any other object, later.
func TestResumeHandlersAreCalledAfterASuspensionAtTheStart(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, once, kopf.ID("first"))
		r.OnResume(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("resume"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
		h.Advance(time.Minute)
		h.Restart()
		h.Advance(time.Minute)
		if got := h.Calls("resume"); len(got) != 0 {
			t.Errorf("called although the object is suspended: %v", got)
		}
		h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":null}}}`)
		h.Advance(2 * time.Hour)
		if got := h.Calls("resume"); len(got) != 1 {
			t.Errorf("got %v, want one call", got)
		}
		if got := h.Calls("first"); len(got) != 2 {
			t.Errorf("got %v, want two calls", got)
		}
	})
}

// People see why nothing happens.
func TestRequestWithoutWorkIsAnswered(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, ignore, kopf.ID("create"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-retry":"1 create"}}}`)
		h.Advance(time.Minute)
		h.Get(one)
		if got := messages(h, "RequestRefused"); len(got) != 1 || one.GetAnnotations()["kopf.zalando.org/requests-handled"] == "" {
			t.Errorf("got the events %q and the annotations %q", got, one.GetAnnotations())
		}
	})
}

// The object is changed and suspended while a handler runs, so that its outcome meets a conflict. The operator continues
// with that version afterwards, and must not call handlers for it.
func TestSuspensionWhileAHandlerRuns(t *testing.T) {
	var sizes []int64
	var h *kopftest.Harness
	withOperator(t, func(r *kopf.Registry) {
		fn := func(_ context.Context, c *kopf.Change) error {
			size, ok := c.Body().Spec().Int64("size")
			if sizes = append(sizes, size); len(sizes) == 1 {
				h.Patch(newExample(), `{"spec":{"size":5},"metadata":{"annotations":{"kopf.zalando.org/request-suspend":"forever"}}}`)
			}
			if !ok {
				return kopf.Permanent(errors.New("there is no size"))
			}
			return nil
		}
		r.OnCreate(examples, fn, kopf.ID("fn"))
		r.OnUpdate(examples, fn, kopf.ID("fn"))
	}, func(t *testing.T, harness *kopftest.Harness) {
		h = harness
		one := newExample()
		h.Create(one)
		h.Advance(time.Hour)
		if len(sizes) != 1 || sizes[0] != 3 {
			t.Errorf("while it is suspended, the handler has seen the sizes %v", sizes)
		}
		expectHandled(t, h, "one")
		h.Patch(one, `{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":null}}}`)
		h.Advance(time.Minute)
		if len(sizes) != 2 || sizes[1] != 5 {
			t.Errorf("afterwards, the handler has seen the sizes %v", sizes)
		}
	})
}
