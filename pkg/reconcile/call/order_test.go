package call_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
)

// A handler whose turn has not come is not due, and has no record.
func TestHandlersWaitForTheirTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, progress, err := w.pass(t.Context(),
			w.handler("a", failing(1, handler.Temporary(errNetwork, time.Minute))),
			w.handler("b", failing(0, nil), handler.After("a")),
		)
		if delay, known := progress.NextDelay(); err != nil || delay != time.Minute || !known {
			t.Errorf("got %v, %s, %v", err, delay, known)
		}
		if got := w.storedIDs(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A handler that is skipped because of the order has neither succeeded nor failed.
func TestHandlersWhoseTurnNeverComesDoNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.handler("a", failing(1, handler.Permanent(errNetwork)))
		b := w.handler("b", failing(0, nil), handler.After("a"))
		c := w.handler("c", failing(0, nil))
		for range 2 { // the end of a is stored before the turn of b is decided
			_, progress, err := w.pass(t.Context(), a, b, c)
			if succeeded, failed := progress.Counts(); err != nil || succeeded != 1 || failed != 1 {
				t.Errorf("got %v, %d, %d", err, succeeded, failed)
			}
		}
		w.expect("0s a: failed, network", "0s c: succeeded", "0s b: skipped, its turn never comes: a has failed")
	})
}

func TestHandlersOrderTheirSubhandlers(t *testing.T) {
	for name, test := range map[string]struct {
		order []handler.ChangeOption
		want  bool
	}{
		"one follows another":      {[]handler.ChangeOption{handler.After("x")}, true},
		"one follows a failure":    {[]handler.ChangeOption{handler.AfterFailure("x")}, true},
		"they are called together": {nil, false},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			progress := w.cycle(w.handler("a", func(_ context.Context, c *handler.Call) error {
				handlertest.Subhandler(c, "x", failing(0, nil))
				handlertest.Subhandler(c, "y", failing(0, nil), test.order...)
				return nil
			}))
			if got := progress.OrdersSubhandlers("a"); got != test.want {
				t.Errorf("%s: got %v", name, got)
			}
		})
	}
}
