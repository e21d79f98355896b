package call_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

var errMisfit = &handler.MisfitError{Type: "*v1.Pod", Err: errors.New("no number")}

// asides makes a pass, and checks which handlers wait without an attempt.
func (w *world) asides(handlers ...*handler.Declaration) {
	w.t.Helper()
	_, progress, err := w.pass(w.t.Context(), handlers...)
	if err != nil {
		w.t.Fatal(err)
	}
	if delay, waiting := progress.NextDelay(); waiting || progress.Done() || !progress.HasMisfit() {
		w.t.Errorf("done: %t, waiting: %t for %s", progress.Done(), waiting, delay)
	}
}

func TestMisfitsHaveNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.asides(
			w.handler("misfit", func(context.Context, *handler.Change) error { return errMisfit }, handler.Retries(1)),
			w.handler("fits", failing(0, nil)),
		)
		w.expect("0s fits: succeeded")
		if got := w.storedIDs(); !slices.Equal(got, []string{"fits"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestMisfitsKeepTheirEarlierAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		answer := handler.Temporary(errNetwork, time.Second)
		d := w.handler("a", func(context.Context, *handler.Change) error { return answer })
		if _, _, err := w.pass(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		answer = errMisfit
		w.asides(d)
		if got := w.stored["a"]; got.Retries != 1 || got.Finished() {
			t.Errorf("got %+v", got)
		}
	})
}

func TestHandlersWaitWithTheirSubhandlers(t *testing.T) {
	never := handler.WhenDecoded(&corev1.Pod{}, func(handler.Arguments) (bool, error) { return false, errMisfit })
	for name, test := range map[string]struct {
		handler handler.ChangeFunc
		log     []string
		stored  []string
	}{
		"one returns the error": {
			parent(subs{"x": func(context.Context, *handler.Change) error { return errMisfit }}),
			nil, nil,
		},
		"another has ended": {
			parent(subs{"x": func(context.Context, *handler.Change) error { return errMisfit }, "y": failing(0, nil)}),
			[]string{"0s a/y: succeeded"},
			[]string{"a", "a/y"},
		},
		"a filter of one returns the error": {func(_ context.Context, c *handler.Change) error {
			c.Subhandler("x", failing(0, nil), never)
			return nil
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.body = map[string]any{"spec": "a text"}
				w.asides(w.handler("a", test.handler))
				w.expect(test.log...)
				if got := w.storedIDs(); !slices.Equal(got, test.stored) {
					t.Errorf("got %v, want %v", got, test.stored)
				}
			})
		})
	}
}

func TestRequestsReachSubhandlers(t *testing.T) {
	for name, test := range map[string]struct {
		request func(p *call.Progress)
		log     []string
	}{
		"retry the handler":     {func(p *call.Progress) { p.Retry("a") }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"retry the sub-handler": {func(p *call.Progress) { p.Retry("a/x") }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"rerun the handler":     {func(p *call.Progress) { p.Rerun("a", cause.Create) }, []string{"0s a/x: succeeded", "0s a: succeeded"}},
		"skip the handler":      {func(p *call.Progress) { p.Skip("a", cause.Create) }, nil},
		"skip the sub-handler":  {func(p *call.Progress) { p.Skip("a/x", cause.Create) }, []string{"0s a: succeeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				d := w.handler("a", parent(subs{"x": failing(1, handler.Temporary(errNetwork, time.Hour))}))
				if _, _, err := w.pass(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				w.log = nil
				runner, progress := w.begin([]*handler.Declaration{d})
				test.request(progress)
				if err := runner.Run(t.Context(), []*handler.Declaration{d}); err != nil {
					t.Fatal(err)
				}
				w.expect(test.log...)
				if !progress.Done() {
					t.Error("it is not done")
				}
			})
		})
	}
}
