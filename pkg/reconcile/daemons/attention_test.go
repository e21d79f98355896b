package daemons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// A daemon follows what it looks at from before its call until after it, and each attempt anew.
func TestDaemonIsWokenByWhatItLooksAt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		watching := func(_ context.Context, c *handler.Call) error {
			w.note("called")
			for !c.WaitForChange(10 * time.Second) {
				w.note("looks")
				if c.Attempt.Retry == 0 {
					return handler.Temporary(errors.New("not yet"), time.Second)
				}
			}
			return nil
		}
		w.match(w.daemon("d", watching, handler.WakeOn("spec")))
		w.until(3)
		w.wake()
		w.until(5) // the second attempt has begun
		w.wake()
		w.until(6)
		w.match()
		w.expect(
			"0s d: follows", "0s called", "3s looks", "3s d: again in 1s, not yet", "3s d: does not follow anymore",
			"4s d: follows", "4s called", "5s looks", "6s d: does not follow anymore", "6s pass",
		)
	})
}

func TestDaemonThatLooksAtNothingFollowsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.match(w.daemon("d", func(_ context.Context, c *handler.Call) error {
			if c.Changed() != nil || c.Children() != nil {
				t.Error("it follows something")
			}
			c.WaitForChange(time.Second)
			return nil
		}))
		w.until(2)
		w.expect("1s d: ended", "1s pass")
	})
}

// What was handed in is taken, also if the daemon does not wait for it. Then it is waited for when the daemon returns.
func TestDaemonWritesAndGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.match(w.daemon("d", func(ctx context.Context, c *handler.Call) error {
			c.SetResult("one")
			if err := c.Write(ctx); err != nil || c.Result() != nil {
				t.Errorf("got %v, %v", err, c.Result())
			}
			if err := c.Write(ctx); err != nil { // there is nothing to write
				t.Error(err)
			}
			c.Context.Patch.Set("two", "status", "field")
			done, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.Write(done)
			if !c.Context.Patch.Empty() {
				t.Error("the patch is not taken")
			}
			return nil
		}))
		w.until(1)
		w.expect("0s d: wrote one", "0s d: wrote <nil>", "0s d: wrote <nil>", "0s d: ended", "0s pass")
	})
}

func TestOptionsOfDaemonsAreChecked(t *testing.T) {
	for name, options := range map[string][]handler.BackgroundOption{
		"a field without a name":     {handler.WakeOn()},
		"a mistyped field":           {handler.WakeOn("metadata.lables")},
		"children without a kind":    {handler.WatchChildren(selector.Selector{}, nil)},
		"a label without children":   {handler.ChildLabel("example.com/parent")},
		"a label that is impossible": {handler.WatchChildren(selector.New("pods"), nil), handler.ChildLabel("!")},
	} {
		t.Run(name, func(t *testing.T) {
			fn := handler.Function{Origin: untilStopped, Call: func(context.Context, *handler.Call) (any, error) { return nil, nil }}
			if _, err := handler.Daemon(selector.New("kopfexamples"), fn, options...); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}

func untilStopped(context.Context, *handler.Call) error { return nil }
