package call_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// The order of the registration can change between two calls, and must not cause a write.
func TestReferencesToSubhandlersAreSorted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.cycle(w.handler("a", func(_ context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "y", failing(0, nil))
			handlertest.Subhandler(c, "x", failing(0, nil))
			return nil
		}))
		if got := w.stored["a"].Subrefs; !slices.Equal(got, []string{"a/x", "a/y"}) {
			t.Errorf("got %q", got)
		}
	})
}

// A second call registers another sub-handler, and the operator stops within the call. The
// record of the sub-handler could not be found without its parent's.
func TestReferencesAreStoredAlthoughTheCallDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		functions := subs{"x": failing(1, handler.Temporary(errNetwork, time.Second))}
		a := w.handler("a", func(ctx context.Context, c *handler.Call) error { return parent(functions)(ctx, c) })
		if _, _, err := w.pass(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		functions["y"], functions["z"] = failing(0, nil), working
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := w.pass(ctx, a); !errors.Is(err, handler.ErrCanceled) {
			t.Fatalf("got %v", err)
		}
		if got := w.stored["a"]; got.Retries != 1 || !slices.Equal(got.Subrefs, []string{"a/x", "a/y", "a/z"}) {
			t.Errorf("got %+v", got)
		}
	})
}

// A handler can end before its sub-handlers. Those that have not ended are not called again,
// so they have no record, and the others keep theirs.
func TestAbandonedSubhandlersHaveNoRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, progress, err := w.pass(t.Context(), w.handler("a", func(ctx context.Context, c *handler.Call) error {
			handlertest.Subhandler(c, "x", failing(1, handler.Temporary(errNetwork, time.Second)))
			handlertest.Subhandler(c, "y", failing(0, nil))
			_ = c.Execute(ctx)
			return handler.Permanent(errNetwork)
		}))
		if err != nil || !progress.Done() {
			t.Fatalf("done: %v, %v", progress.Done(), err)
		}
		if got := w.storedIDs(); !slices.Equal(got, []string{"a", "a/y"}) || progress.Load("a/x").Stored() != nil {
			t.Errorf("got %q, %+v", got, progress.Load("a/x").Stored())
		}
	})
}

func TestSubhandlersOfACarriedOverHandlerAreNotCalledAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.stored["a"] = &storage.Record{Started: time.Now(), Purpose: cause.Resume, Subrefs: []string{"a/x", "a/y"}}
		w.stored["a/x"] = &storage.Record{Started: time.Now(), Purpose: cause.Resume, Success: true}
		a := w.handler("a", parent(subs{"x": failing(0, nil), "y": failing(0, nil)}))
		runner, progress := w.begin(nil)
		progress.Include("a", cause.Create, true)
		if err := runner.Run(t.Context(), registry.Handlers{a}); err != nil {
			t.Fatal(err)
		}
		w.expect("0s a/y: succeeded", "0s a: succeeded")
	})
}

func TestParentsOfHandlers(t *testing.T) {
	declared := []string{"fn", "fn/spec.size", "other"}
	tests := map[string]string{
		"fn": "fn", "fn/a": "fn", "fn/spec.size": "fn/spec.size", "fn/spec.size/a": "fn/spec.size", "fn/spec.sizes": "fn", "fns": "", "gone/a": "", "other/a/b": "other",
	}
	for id, want := range tests {
		if got := call.TopOf(id, declared); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}
