package call_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
)

// When the engine ends the run within a handler, that handler's attempt does not
// count, but the finished attempts of its sub-handlers do.
func TestRunEndsWithinASubhandler(t *testing.T) {
	stop := errors.New("stop")
	for name, inPlace := range map[string]bool{"executed by the framework": false, "executed by the handler": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				calls := 0
				w.before = func(context.Context) error {
					if calls++; calls == 4 { // a, a/b, a/b/c, and not a/b/d
						return stop
					}
					return nil
				}
				inner := parent(subs{"c": failing(0, nil), "d": failing(0, nil)})
				a := w.handler("a", func(ctx context.Context, c *handler.Call) error {
					handlertest.Subhandler(c, "b", inner)
					if inPlace {
						if err := c.Execute(ctx); err != nil {
							_ = c.Execute(ctx) // a second try has no effect
							return handler.Permanent(err)
						}
					}
					return nil
				})
				runner, progress, err := w.pass(t.Context(), a)
				if !errors.Is(err, stop) || runner.Attempts != 1 || calls != 4 || progress.Done() {
					t.Errorf("got %v, %d attempts, %d calls", err, runner.Attempts, calls)
				}
				if w.stored["a"].Retries != 0 || w.stored["a/b"].Retries != 0 || !w.stored["a/b/c"].Success {
					t.Errorf("got %+v, %+v, %+v", w.stored["a"], w.stored["a/b"], w.stored["a/b/c"])
				}
				w.cycle(a)
				w.expect("0s a/b/c: succeeded", "0s a/b/d: succeeded", "0s a/b: succeeded", "0s a: succeeded")
			})
		})
	}
}

// The run ends at the last moment before the code of a handler.
func TestRunEndsBeforeACall(t *testing.T) {
	stop := errors.New("stop")
	for name, at := range map[string]int{"of a handler": 1, "of a sub-handler": 2} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.handler("a", parent(subs{"x": failing(0, nil)}))
				runner, progress := w.begin([]*handler.Declaration{a})
				asked := 0
				runner.Interrupted = func() error {
					if asked++; asked == at {
						return stop
					}
					return nil
				}
				err := runner.Run(t.Context(), []*handler.Declaration{a})
				w.store(progress)
				if !errors.Is(err, stop) || runner.Attempts != 0 || w.stored["a/x"] != nil && w.stored["a/x"].Retries != 0 {
					t.Errorf("got %v, %d attempts, %+v", err, runner.Attempts, w.stored)
				}
				w.expect()
				w.cycle(a)
				w.expect("0s a/x: succeeded", "0s a: succeeded")
			})
		})
	}
}

func TestCanceledSubhandlerAttemptDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := w.handler("a", parent(subs{"x": failing(0, nil), "y": working}), handler.Retries(1))
		_, _, err := w.pass(ctx, a)
		if !errors.Is(err, handler.ErrCanceled) || w.stored["a"].Retries != 0 || w.stored["a/y"].Retries != 0 || !w.stored["a/x"].Success {
			t.Errorf("got %v, %+v, %+v", err, w.stored["a"], w.stored["a/y"])
		}
		w.cycle(a)
		w.expect("0s a/x: succeeded", "3660s a/y: succeeded", "3660s a: succeeded")
	})
}

// A checkpoint within a handler already refers to the sub-handlers: their records could
// not be found after a crash otherwise.
func TestCheckpointWithinAHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.handler("a", parent(subs{"x": failing(0, nil), "y": func(context.Context, *handler.Call) error { panic("crash") }}))
		runner, progress := w.begin([]*handler.Declaration{a})
		calls := 0
		runner.BeforeAttempt = func(ctx context.Context) error {
			if calls++; calls == 3 {
				if _, limited := ctx.Deadline(); limited {
					t.Error("the handler's timeout limits the write")
				}
				w.store(progress)
			}
			return nil
		}
		if err := runner.Run(t.Context(), []*handler.Declaration{a}); err != nil {
			t.Fatal(err)
		}
		if got := w.storedIDs(); !slices.Equal(got, []string{"a", "a/x", "a/y"}) || !w.stored["a/x"].Success || w.stored["a"].Retries != 0 {
			t.Errorf("got %v, %+v", got, w.stored["a"])
		}
		if got := w.stored["a"].Subrefs; !slices.Equal(got, []string{"a/x", "a/y"}) {
			t.Errorf("got %v", got)
		}
	})
}

// Filters are user code, too.
func TestPanicInAFilterOfASubhandler(t *testing.T) {
	for name, inPlace := range map[string]bool{"called by the framework": false, "called by the handler": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				first := true
				w.cycle(w.handler("a", func(ctx context.Context, c *handler.Call) error {
					handlertest.Subhandler(c, "x", failing(0, nil), handlertest.When(func(*handler.Call) bool {
						if first {
							first = false
							panic("oops")
						}
						return true
					}))
					if inPlace {
						return c.Execute(ctx)
					}
					return nil
				}))
				w.expect("0s a: again in 1m0s, panic: oops", "60s a/x: succeeded", "60s a: succeeded")
			})
		})
	}
}
