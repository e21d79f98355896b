package call_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestLifecycles(t *testing.T) {
	tests := map[string]struct {
		lifecycle lifecycles.Lifecycle
		want      []string
	}{
		"all at once": {lifecycles.AllAtOnce, []string{
			"0s a: again in 10s, network", "0s b: succeeded", "0s c: succeeded", "10s a: succeeded",
		}},
		"one by one": {lifecycles.OneByOne, []string{
			"0s a: again in 10s, network", "0s b: succeeded", "0s c: succeeded", "10s a: succeeded",
		}},
		"as soon as possible": {lifecycles.AsSoonAsPossible, []string{
			"0s a: again in 10s, network", "0s b: succeeded", "0s c: succeeded", "10s a: succeeded",
		}},
		"the last one only": {
			func(due []lifecycles.Due) []lifecycles.Due { return due[max(0, len(due)-1):] },
			[]string{"0s c: succeeded", "0s b: succeeded", "0s a: again in 10s, network", "10s a: succeeded"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				w.lifecycle = test.lifecycle
				w.cycle(w.handler("a", failing(1, errNetwork), handler.Backoff(10*time.Second)),
					w.handler("b", failing(0, nil)), w.handler("c", failing(0, nil)))
				w.expect(test.want...)
			})
		})
	}
}

func TestLifecyclesSeeTheHandlersAndTheirArguments(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.lifecycle = func(due []lifecycles.Due) []lifecycles.Due {
			for _, d := range due {
				w.note("%s of %s with %v, tried %d times", d.ID, d.Reason, d.Param, d.Retries)
			}
			return due
		}
		w.cycle(w.handler("a", failing(1, errNetwork), handler.Backoff(10*time.Second), handler.Param(7)))
		w.expect("0s a of create with 7, tried 0 times", "0s a: again in 10s, network", "10s a of create with 7, tried 1 times", "10s a: succeeded")
	})
}

func TestFinishedHandlersAreNotCalledAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.stored["a"] = &storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Success: true}
		w.stored["b"] = &storage.Record{Started: time.Now(), Purpose: cause.Create, Retries: 1, Failure: true}
		w.stored["c"] = &storage.Record{Started: time.Now(), Purpose: cause.Update, Retries: 1, Success: true}
		progress := w.cycle(w.handler("a", failing(9, io.EOF)), w.handler("b", failing(9, io.EOF)), w.handler("c", failing(0, nil)))
		w.expect("0s c: succeeded")
		if succeeded, failed := progress.Counts(); succeeded != 2 || failed != 1 {
			t.Errorf("got %d, %d", succeeded, failed)
		}
	})
}

func TestEdits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		runner, _, err := w.pass(t.Context(),
			w.handler("nothing", failing(0, nil)),
			w.handler("result", func(_ context.Context, c *handler.Call) error {
				c.SetResult(struct {
					Size uint8 `json:"size"`
				}{1})
				return nil
			}),
			w.handler("patch", func(_ context.Context, c *handler.Call) error {
				c.SetResult("not yet")
				c.Context.Patch.Set("x", "status", "phase")
				return errNetwork
			}),
		)
		if err != nil || len(runner.Edits) != 2 || runner.Attempts != 3 {
			t.Fatalf("got %+v, %v", runner.Edits, err)
		}
		result, patched := runner.Edits[0], runner.Edits[1]
		if result.ID != "result" || !reflect.DeepEqual(result.Result, map[string]any{"size": int64(1)}) || !result.Patch.Empty() {
			t.Errorf("got %+v", result)
		}
		merge, err := patched.Patch.Resolve(map[string]any{})
		if err != nil || patched.ID != "patch" || patched.Result != nil || !reflect.DeepEqual(merge, map[string]any{"status": map[string]any{"phase": "x"}}) {
			t.Errorf("got %+v, %v", patched, err)
		}
	})
}

// Before an attempt, the engine may store a checkpoint, or stop.
func TestEngineMayEndTheRunBeforeAnAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		stop := errors.New("stop")
		calls := 0
		w.before = func(context.Context) error {
			if calls++; calls == 2 {
				return stop
			}
			return nil
		}
		a, b := w.handler("a", failing(0, nil)), w.handler("b", failing(0, nil))
		runner, progress, err := w.pass(t.Context(), a, b)
		if !errors.Is(err, stop) || runner.Attempts != 1 || progress.Done() {
			t.Errorf("got %v, %d attempts", err, runner.Attempts)
		}
		if delay, waiting := progress.NextDelay(); delay != 0 || !waiting {
			t.Errorf("got %v, %v", delay, waiting)
		}
		w.cycle(a, b)
		w.expect("0s a: succeeded", "0s b: succeeded")
	})
}

// An operator that stops cancels its handlers. The errors that they return then say
// nothing about their work.
func TestCanceledAttemptDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(30*time.Second, func() { cancel(errors.New("the operator is stopping")) })
		a, b, c := w.handler("a", failing(0, nil)), w.handler("b", working, handler.Retries(1)), w.handler("c", failing(0, nil))
		runner, _, err := w.pass(ctx, a, b, c)
		if !errors.Is(err, handler.ErrCanceled) || runner.Attempts != 1 || w.stored["b"].Retries != 0 || w.stored["b"].Finished() {
			t.Errorf("got %v, %d attempts, %+v", err, runner.Attempts, w.stored["b"])
		}
		w.cycle(a, b, c)
		w.expect("0s a: succeeded", "3630s b: succeeded", "3630s c: succeeded")
	})
}

func TestSuccessAfterCancellationCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := w.pass(ctx, w.handler("a", func(context.Context, *handler.Call) error { time.Sleep(time.Minute); return nil }))
		if err != nil || !w.stored["a"].Success {
			t.Errorf("got %v, %+v", err, w.stored["a"])
		}
	})
}

// The context of a call is the one that the engine has prepared, limited by the
// handler's timeout.
func TestContextOfACall(t *testing.T) {
	type key struct{}
	inBubble(t, func(t *testing.T, w *world) {
		d := w.handler("a", func(ctx context.Context, c *handler.Call) error {
			deadline, limited := ctx.Deadline()
			w.note("%v, %v, %s", ctx.Value(key{}), limited, time.Until(deadline))
			<-ctx.Done()
			w.note("%v", context.Cause(ctx))
			return nil
		}, handler.Timeout(time.Minute))
		runner, _ := w.begin([]*handler.Declaration{d})
		prepare := runner.Prepare
		runner.Prepare = func(ctx context.Context, d *handler.Declaration) (context.Context, handler.CallContext, call.EndSpan) {
			return prepare(context.WithValue(ctx, key{}, d.ID), d)
		}
		if err := runner.Run(t.Context(), []*handler.Declaration{d}); err != nil {
			t.Error(err)
		}
		w.expect("0s a, true, 1m0s", "60s handler a has timed out after 1m0s", "60s a: succeeded")
	})
}

func TestNormalizeResult(t *testing.T) {
	if got, err := call.NormalizeResult([]string{"a"}); err != nil || !reflect.DeepEqual(got, []any{"a"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := call.NormalizeResult(func() {}); got != nil || !handler.IsPermanent(err) {
		t.Errorf("got %v, %v", got, err)
	}
}
