package virtual

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const waitsForLists = "No handler is called yet: the operator waits for the initial lists of objects."

// withThemes runs a test of an operator with a handler for examples and another one for config maps, while the operator
// is stopped and there is one object of each. The requests for the config maps fail with the error.
func withThemes(t *testing.T, err error, test func(*testing.T, *kopftest.Harness, *kopftest.Failure)) {
	t.Helper()
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("example"))
		r.OnCreate(kopf.Resource("v1", "configmaps"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("theme"))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Stop()
		h.Create(newExample())
		h.Create(newTheme())
		test(t, h, h.Fail(kopftest.Requests{Resource: "configmaps"}, 0, err))
	})
}

// linesWith returns the lines with a message.
func linesWith(h *kopftest.Harness, message string) (found []kopftest.Log) {
	for _, line := range h.Logs() {
		if line.Message == message {
			found = append(found, line)
		}
	}
	return found
}

// A resource without a role for the operator holds up neither the start nor the handlers of others. Its objects are
// handled when the role is there.
func TestResourceThatMayNotBeListedHoldsUpNoOther(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("there is no role"))
	withThemes(t, refused, func(t *testing.T, h *kopftest.Harness, failure *kopftest.Failure) {
		began := time.Now()
		h.Start()
		if took := time.Since(began); took > time.Second || failure.Count() == 0 {
			t.Errorf("the start took %s, with %d refusals", took, failure.Count())
		}
		h.Advance(time.Minute)
		if calls := h.Calls(); len(calls) != 1 || calls[0].Handler != "example" || calls[0].At.Sub(began) > time.Second {
			t.Errorf("got the calls %v", calls)
		}
		if lines := linesWith(h, waitsForLists); len(lines) > 0 {
			t.Errorf("got %v", lines)
		}
		state := h.Operator().State()
		for _, w := range state.Watches {
			if isTheme := w.Resource == "configmaps.v1"; w.Listed == isTheme || apierrors.IsForbidden(w.Err) != isTheme {
				t.Errorf("got the watch %+v", w)
			}
		}
		if !state.Ready || len(state.Watches) != 2 {
			t.Errorf("got %+v", state)
		}
		failure.End()
		h.Advance(time.Minute)
		if calls := h.Calls("theme"); len(calls) != 1 {
			t.Errorf("got the calls %v after the role was there", calls)
		}
	})
}

// An operator that calls no handler says what it waits for, once.
func TestOperatorThatWaitsForAListSaysForWhich(t *testing.T) {
	withThemes(t, errors.New("the connection is lost"), func(t *testing.T, h *kopftest.Harness, failure *kopftest.Failure) {
		const outage = time.Minute
		began := time.Now()
		time.AfterFunc(outage, failure.End)
		h.Start() // waits for all lists
		h.Advance(time.Minute)
		lines := linesWith(h, waitsForLists)
		if len(lines) != 1 || lines[0].At.Sub(began).Round(time.Second) != 10*time.Second || lines[0].Level != 0 ||
			lines[0].Values["resource"] != "configmaps.v1" || lines[0].Values["namespace"] != "" {
			t.Errorf("got %v", lines)
		}
		for _, id := range []string{"example", "theme"} {
			if calls := h.Calls(id); len(calls) != 1 || calls[0].At.Sub(began) < outage {
				t.Errorf("got the calls %v", calls)
			}
		}
	})
}

// A watch that delivers nothing may have a dead connection, or a server that is far behind. That the operator lists the
// objects again, and may have learned of changes late, is said. Other interruptions are ordinary.
func TestSilentWatchLeavesALineInTheLog(t *testing.T) {
	const silence = "The watch has delivered nothing for too long, and is restarted with a list."
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("example"))
	}, func(t *testing.T, h *kopftest.Harness) {
		expect := func(when string, want int) {
			t.Helper()
			lines := linesWith(h, silence)
			if len(lines) != want {
				t.Errorf("%s: got %v, want %d lines", when, lines, want)
			}
			for _, line := range lines {
				if line.Level != 0 || line.Values["resource"] != "kopfexamples.v1.kopf.dev" || line.Values["namespace"] != "" {
					t.Errorf("%s: got %v", when, line)
				}
			}
		}
		h.Advance(50 * time.Second)
		h.APIServer().SendBookmarks()
		h.Advance(50 * time.Second)
		expect("with a bookmark", 0)
		h.APIServer().EndWatches()
		h.Advance(50 * time.Second)
		expect("after another interruption", 0)
		h.Advance(30 * time.Second)
		expect("after a silence", 1)
		h.Create(newExample())
		h.Settle()
		if calls := h.Calls("example"); len(calls) != 1 {
			t.Errorf("got the calls %v after the silence", calls)
		}
		h.Advance(90 * time.Second)
		expect("after another silence", 2)
	}, kopftest.Settings(func(s *kopf.Settings) { s.Watching.InactivityTimeout = time.Minute }))
}
