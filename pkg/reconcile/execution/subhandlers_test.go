package execution_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// parent registers the sub-handlers, and leaves their execution to the framework.
func parent(children map[string]handler.ChangeFunc, options ...handler.SubhandlerOption) handler.ChangeFunc {
	return func(_ context.Context, c *handler.Change) error {
		for _, id := range slices.Sorted(keys(children)) {
			c.Subhandler(id, children[id], options...)
		}
		return nil
	}
}

func keys(children map[string]handler.ChangeFunc) func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range children {
			if !yield(id) {
				return
			}
		}
	}
}

type family = map[string]handler.ChangeFunc

func TestSubhandlersAreHandlersOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cycle(w.handler("a", parent(family{
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
			w.handler("a", parent(family{"b": parent(family{"c": failing(1, handler.Temporary(errNetwork, time.Second)), "d": failing(0, nil)})})),
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
		// Whoever purges the records finds them without calling anybody.
		if got := progress.IDs(); !slices.Equal(got, []string{"a", "a/b", "a/b/c", "a/b/d", "z"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestTheLifecycleIsThatOfSubhandlersToo(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.lifecycle = lifecycles.OneByOne
		w.cycle(w.handler("a", parent(family{"x": failing(0, nil), "y": failing(0, nil)})))
		w.expect(
			"0s a/x: succeeded", "0s a: again in 0s, some sub-handlers are not done yet",
			"0s a/y: succeeded", "0s a: succeeded",
		)
	})
}

func TestExecuteRunsSubhandlersInPlace(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		x := failing(1, handler.Temporary(errNetwork, time.Second))
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Change) error {
			c.Subhandler("x", x)
			if err := c.Execute(ctx); err != nil {
				return fmt.Errorf("not yet: %w", err)
			}
			w.note("the first part is done")
			c.Subhandler("y", failing(0, nil))
			return nil
		}))
		w.expect(
			"0s a/x: again in 1s, network", "0s a: again in 1s, not yet: some sub-handlers are not done yet",
			"1s a/x: succeeded", "1s the first part is done", "1s a/y: succeeded", "1s a: succeeded",
		)
	})
}

// A handler that takes no notice of its sub-handlers does not succeed without
// them.
func TestUnfinishedSubhandlersAreNotForgotten(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		x := failing(1, handler.Temporary(errNetwork, time.Second))
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Change) error {
			c.Subhandler("x", x)
			_ = c.Execute(ctx)
			return nil
		}))
		w.expect(
			"0s a/x: again in 1s, network", "0s a: again in 1s, some sub-handlers are not done yet",
			"1s a/x: succeeded", "1s a: succeeded",
		)
	})
}

// Nobody calls the sub-handlers of a handler that has given up: nobody must wait
// for them either, or the object would be held for nothing.
func TestSubhandlersAreNotWaitedForWithoutTheirParent(t *testing.T) {
	tests := map[string]struct {
		fn      func(ctx context.Context, c *handler.Change) error
		options []handler.CreateOption
		want    []string
	}{
		"it fails for good": {
			func(ctx context.Context, c *handler.Change) error {
				_ = c.Execute(ctx)
				return handler.Permanent(errNetwork)
			}, nil,
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet", "0s a: failed, network",
			},
		},
		"its time would be up": {
			func(ctx context.Context, c *handler.Change) error { return c.Execute(ctx) },
			[]handler.CreateOption{handler.Timeout(time.Minute)},
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet",
				"0s a: failed, handler a has timed out after 1m0s: some sub-handlers are not done yet",
			},
		},
		"its attempts are used up": {
			func(ctx context.Context, c *handler.Change) error { return c.Execute(ctx) },
			[]handler.CreateOption{handler.Retries(1)},
			[]string{
				"0s a/x/y: again in 1h0m0s, network", "0s a/x: again in 1h0m0s, some sub-handlers are not done yet",
				"0s a: failed, handler a has used up its 1 attempts: some sub-handlers are not done yet",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				progress := w.cycle(w.handler("a", func(ctx context.Context, c *handler.Change) error {
					c.Subhandler("x", parent(family{"y": failing(9, handler.Temporary(errNetwork, time.Hour))}))
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
		w.cycle(w.handler("a", parent(family{"x": failing(9, errNetwork)}, handler.Retries(2), handler.Backoff(5*time.Second))))
		w.expect(
			"0s a/x: again in 5s, network", "0s a: again in 5s, some sub-handlers are not done yet",
			"5s a/x: failed, handler a/x has used up its 2 attempts: network", "5s a: succeeded",
		)
	})
}

// The time of a handler is up for its sub-handlers too.
func TestTheTimeoutOfTheParentEndsItsSubhandlers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.cycle(w.handler("a", parent(family{"x": working, "y": failing(0, nil)}), handler.Timeout(30*time.Second)))
		w.expect(
			"30s a/x: failed, handler a has timed out after 30s: context deadline exceeded",
			"30s a: failed, handler a has timed out after 30s",
		)
	})
}

// A handler may give its sub-handlers less time than it has itself.
func TestAContextOfTheHandlersOwnEndsItsSubhandlersOnly(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		hurry := true
		w.cycle(w.handler("a", func(ctx context.Context, c *handler.Change) error {
			c.Subhandler("x", working, handler.Backoff(time.Second))
			if hurry {
				hurry = false
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
		fn   handler.ChangeFunc
		want string
	}{
		"two of one id": {
			func(_ context.Context, c *handler.Change) error {
				c.Subhandler("x", failing(0, nil))
				c.Subhandler("x", failing(0, nil))
				return nil
			}, `two sub-handlers have the id "a/x": each needs its own`,
		},
		"no function": {
			func(_ context.Context, c *handler.Change) error { c.Subhandler("x", nil); return nil }, "there is no function to call",
		},
		"in place": {
			func(ctx context.Context, c *handler.Change) error {
				c.Subhandler("", failing(0, nil))
				return c.Execute(ctx)
			}, "its id is empty",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				runner, _ := w.begin([]*handler.Declaration{w.handler("a", test.fn)})
				var outcome execution.Outcome
				runner.AfterAttempt = func(_ context.Context, _ *handler.Declaration, o execution.Outcome) { outcome = o }
				if err := runner.Run(t.Context(), []*handler.Declaration{w.handler("a", test.fn)}); err != nil {
					t.Fatal(err)
				}
				if !outcome.Final || !contains(outcome.Err, test.want) || !contains(outcome.Err, "execution/subhandlers_test.go:") {
					t.Errorf("got %v, want %q in it", outcome.Err, test.want)
				}
			})
		})
	}
}

// A handler that fails leaves its sub-handlers for the next time.
func TestAFailingHandlerDoesNotBeginItsSubhandlers(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.cycle(w.handler("a", func(_ context.Context, c *handler.Change) error {
			c.Subhandler("x", failing(0, nil))
			if c.Retry() == 0 {
				return handler.Temporary(errNetwork, time.Second)
			}
			return nil
		}))
		w.expect("0s a: again in 1s, network", "1s a/x: succeeded", "1s a: succeeded")
	})
}

func TestSubhandlersContribute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		result := func(value any) handler.ChangeFunc {
			return func(_ context.Context, c *handler.Change) error { c.SetResult(value); return nil }
		}
		runner, _, err := w.pass(t.Context(), w.handler("a", func(ctx context.Context, c *handler.Change) error {
			c.SetResult("whole")
			return parent(family{"x": result("part")})(ctx, c)
		}))
		if err != nil || len(runner.Edits) != 2 || runner.Edits[0].ID != "a/x" || runner.Edits[1].Result != "whole" {
			t.Errorf("got %+v, %v", runner.Edits, err)
		}
	})
}
