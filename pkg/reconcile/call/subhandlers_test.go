package call_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// parent returns a handler that registers the sub-handlers, and leaves their
// execution to the framework.
func parent(functions subs, options ...handler.ChangeOption) func(context.Context, *handler.Call) error {
	return func(_ context.Context, c *handler.Call) error {
		for _, id := range slices.Sorted(maps.Keys(functions)) {
			handlertest.Subhandler(c, id, functions[id], options...)
		}
		return nil
	}
}

type subs = map[string]func(context.Context, *handler.Call) error

func TestSubhandlersHaveTheirOwnRecords(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cycle(w.handler("a", parent(subs{
			"x": failing(1, handler.Temporary(errNetwork, 10*time.Second)),
			"y": failing(0, nil),
			"z": failing(1, handler.Permanent(errNetwork)),
		})))
		w.expect(
			"0s a/x: again in 10s, network", "0s a/y: succeeded", "0s a/z: failed, network",
			"0s a: again in 10s, some sub-handlers are not done yet",
			"10s a/x: succeeded", "10s a: succeeded",
		)
		if got := w.storedIDs(); !slices.Equal(got, []string{"a", "a/x", "a/y", "a/z"}) {
			t.Errorf("got %v", got)
		}
		if got := w.stored["a"].Subrefs; !slices.Equal(got, []string{"a/x", "a/y", "a/z"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestSubhandlersHaveSubhandlers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		progress := w.cycle(
			w.handler("a", parent(subs{"b": parent(subs{"c": failing(1, handler.Temporary(errNetwork, time.Second)), "d": failing(0, nil)})})),
			w.handler("z", failing(0, nil)),
		)
		w.expect(
			"0s a/b/c: again in 1s, network", "0s a/b/d: succeeded",
			"0s a/b: again in 1s, some sub-handlers are not done yet",
			"0s a: again in 1s, some sub-handlers are not done yet",
			"0s z: succeeded",
			"1s a/b/c: succeeded", "1s a/b: succeeded", "1s a: succeeded",
		)
		for id, want := range map[string][]string{"a": {"a/b", "a/b/c", "a/b/d"}, "a/b": {"a/b/c", "a/b/d"}, "a/b/c": nil, "z": nil} {
			if got := w.stored[id].Subrefs; !slices.Equal(got, want) {
				t.Errorf("%s refers to %v", id, got)
			}
		}
		// All records are found for purging without a call of any handler.
		if got := progress.IDs(); !slices.Equal(got, []string{"a", "a/b", "a/b/c", "a/b/d", "z"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestLifecycleAppliesToSubhandlers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.lifecycle = lifecycles.OneByOne
		w.cycle(w.handler("a", parent(subs{"x": failing(0, nil), "y": failing(0, nil)})))
		w.expect(
			"0s a/x: succeeded", "0s a: again in 0s, some sub-handlers are not done yet",
			"0s a/y: succeeded", "0s a: succeeded",
		)
	})
}

func TestExecuteRunsSubhandlersInPlace(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		x := failing(1, handler.Temporary(errNetwork, time.Second))
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", x)
			if err := c.Execute(ctx); err != nil {
				return fmt.Errorf("not yet: %w", err)
			}
			w.note("the first part is done")
			handlertest.Subhandler(c, "y", failing(0, nil))
			return nil
		}))
		w.expect(
			"0s a/x: again in 1s, network", "0s a: again in 1s, not yet: some sub-handlers are not done yet",
			"1s a/x: succeeded", "1s the first part is done", "1s a/y: succeeded", "1s a: succeeded",
		)
	})
}

// A handler that ignores the error of Execute does not succeed before its sub-handlers.
func TestUnfinishedSubhandlersDelayTheirParent(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		x := failing(1, handler.Temporary(errNetwork, time.Second))
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", x)
			_ = c.Execute(ctx)
			return nil
		}))
		w.expect(
			"0s a/x: again in 1s, network", "0s a: again in 1s, some sub-handlers are not done yet",
			"1s a/x: succeeded", "1s a: succeeded",
		)
	})
}

// The sub-handlers of a failed handler are not called again, so they must not be waited
// for, either: the object would be held for nothing.
func TestSubhandlersAreNotWaitedForAfterTheirParent(t *testing.T) {
	tests := map[string]struct {
		fn      func(ctx context.Context, c *handler.Call) error
		options []handler.ChangeOption
		want    []string
	}{
		"it fails permanently": {
			func(ctx context.Context, c *handler.Call) error {
				_ = c.Execute(ctx)
				return handler.Permanent(errNetwork)
			}, nil,
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet", "0s a: failed, network",
			},
		},
		"its timeout would expire": {
			func(ctx context.Context, c *handler.Call) error { return c.Execute(ctx) },
			[]handler.ChangeOption{handler.Timeout(time.Minute)},
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet",
				"0s a: failed, handler a has timed out after 1m0s: some sub-handlers are not done yet",
			},
		},
		"it has no attempts left": {
			func(ctx context.Context, c *handler.Call) error { return c.Execute(ctx) },
			[]handler.ChangeOption{handler.Retries(1)},
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet",
				"0s a: failed, handler a has used up its 1 attempts: some sub-handlers are not done yet",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				progress := w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
					handlertest.Subhandler(c, "x", parent(subs{"y": failing(9, handler.Temporary(errNetwork, time.Hour))}))
					return test.fn(ctx, c)
				}, test.options...))
				w.note("over")
				w.expect(append(test.want, "0s over")...)
				if succeeded, failed := progress.Counts(); succeeded != 0 || failed != 1 {
					t.Errorf("got %d, %d", succeeded, failed)
				}
			})
		})
	}
}

func TestSubhandlersHaveTheirOwnLimits(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.cycle(w.handler("a", parent(subs{"x": failing(9, errNetwork)}, handler.Retries(2), handler.Backoff(5*time.Second))))
		w.expect(
			"0s a/x: again in 5s, network", "0s a: again in 5s, some sub-handlers are not done yet",
			"5s a/x: failed, handler a/x has used up its 2 attempts: network", "5s a: succeeded",
		)
	})
}

// The timeout of a handler limits its sub-handlers, too.
func TestTimeoutOfTheParentEndsItsSubhandlers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.cycle(w.handler("a", parent(subs{"x": working, "y": failing(0, nil)}), handler.Timeout(30*time.Second)))
		w.expect(
			"30s a/x: failed, handler a has timed out after 30s: context deadline exceeded",
			"30s a: failed, handler a has timed out after 30s",
		)
	})
}

// A handler may give its sub-handlers less time than it has itself.
func TestContextOfExecuteEndsSubhandlersOnly(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		first := true
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", working, handler.Backoff(time.Second))
			if first {
				first = false
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			return c.Execute(ctx)
		}))
		w.expect(
			"1s a/x: again in 1s, context deadline exceeded", "1s a: again in 1s, some sub-handlers are not done yet",
			"3602s a/x: succeeded", "3602s a: succeeded",
		)
	})
}

func TestMistakesInSubhandlersFailTheirParent(t *testing.T) {
	tests := map[string]struct {
		fn   func(context.Context, *handler.Call) error
		want string
	}{
		"two with the same id": {
			func(_ context.Context, c *handler.Call) error {
				handlertest.Subhandler(c, "x", failing(0, nil))
				handlertest.Subhandler(c, "x", failing(0, nil))
				return nil
			}, `two sub-handlers have the id "a/x": each needs its own`,
		},
		"no function": {
			func(_ context.Context, c *handler.Call) error { handlertest.Subhandler(c, "x", nil); return nil }, "the function is nil",
		},
		"executed by the handler": {
			func(ctx context.Context, c *handler.Call) error {
				handlertest.Subhandler(c, "", failing(0, nil))
				return c.Execute(ctx)
			}, "its id is empty",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				runner, _ := w.begin([]*handler.Declaration{w.handler("a", test.fn)})
				var outcome call.Outcome
				runner.AfterAttempt = func(_ context.Context, _ *handler.Declaration, o call.Outcome) { outcome = o }
				if err := runner.Run(t.Context(), []*handler.Declaration{w.handler("a", test.fn)}); err != nil {
					t.Fatal(err)
				}
				if !outcome.Final || !contains(outcome.Err, test.want) || !contains(outcome.Err, "call/subhandlers_test.go:") {
					t.Errorf("got %v, want %q in it", outcome.Err, test.want)
				}
			})
		})
	}
}

// A handler that fails leaves its sub-handlers to its next attempt.
func TestFailingHandlerDoesNotStartItsSubhandlers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.cycle(w.handler("a", func(_ context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", failing(0, nil))
			if c.Attempt.Retry == 0 {
				return handler.Temporary(errNetwork, time.Second)
			}
			return nil
		}))
		w.expect("0s a: again in 1s, network", "1s a/x: succeeded", "1s a: succeeded")
	})
}

func TestEditsOfSubhandlers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		result := func(value any) func(context.Context, *handler.Call) error {
			return func(_ context.Context, c *handler.Call) error { c.SetResult(value); return nil }
		}
		runner, _, err := w.pass(t.Context(), w.handler("a", func(ctx context.Context, c *handler.Call) error {
			c.SetResult("whole")
			return parent(subs{"x": result("part")})(ctx, c)
		}))
		if err != nil || len(runner.Edits) != 2 || runner.Edits[0].ID != "a/x" || runner.Edits[1].Result != "whole" {
			t.Errorf("got %+v, %v", runner.Edits, err)
		}
	})
}
