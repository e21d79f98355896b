package virtual

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// knowingSized lets an operator have handlers of a Go type that objects fit whose size is a number.
func knowingSized() kopftest.Option {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}, &sized{})
	return kopftest.Scheme(scheme)
}

func ignoreSized(context.Context, *sized, *kopf.Change) error { return nil }

// The time in which a handler cannot be called does not count against its timeout, whether or not the operator was
// restarted in between.
func TestTimeOfMisfitsDoesNotCount(t *testing.T) {
	for name, restart := range map[string]func(h *kopftest.Harness){
		"in one process": func(*kopftest.Harness) {}, "after a restart": (*kopftest.Harness).Restart, "after a crash": (*kopftest.Harness).Crash,
	} {
		t.Run(name, func(t *testing.T) {
			var runtimes []time.Duration
			withOperator(t, func(r *kopf.Registry) {
				kopf.For[*sized](r).OnCreate(func(_ context.Context, _ *sized, c *kopf.Change) error {
					runtimes = append(runtimes, c.Runtime().Round(time.Second))
					return kopf.Temporary(errors.New("not yet"), 10*time.Second)
				}, kopf.ID("fn"), kopf.Timeout(30*time.Second))
			}, func(t *testing.T, h *kopftest.Harness) {
				one := newExample()
				h.Create(one)
				h.Advance(5 * time.Second)
				h.Patch(one, `{"spec": {"size": "many"}}`)
				h.Advance(time.Hour)
				restart(h)
				h.Advance(time.Hour)
				writes := len(h.Writes())
				h.Patch(one, `{"spec": {"size": 1}}`)
				h.Advance(time.Minute)
				if want := []time.Duration{0, 10 * time.Second, 20 * time.Second}; !slices.Equal(runtimes, want) {
					t.Errorf("the handler was called after %s, want %s", runtimes, want)
				}
				expectHandled(t, h, "one")
				if more := h.Writes()[writes:]; len(more) != 2 {
					t.Errorf("got the writes %v for two attempts", more)
				}
			}, knowingSized())
		})
	}
}

// A deletion has nothing to clean up if no handler could ever be called.
func TestObjectThatFitsNoHandlerNeedsNoFinalizer(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		typed := kopf.For[*sized](r)
		typed.OnCreate(ignoreSized, kopf.ID("create"))
		typed.OnDelete(ignoreSized, kopf.ID("delete"))
	}, func(t *testing.T, h *kopftest.Harness) {
		for merge, want := range map[string]int{`{"spec": {"size": 1}}`: 1, `{"spec": {"size": "many"}}`: 0} {
			one := newExample()
			if want == 0 {
				one.Object["spec"] = map[string]any{"size": "many"}
			}
			h.Create(one)
			h.Advance(time.Minute)
			h.Get(one)
			if got := one.GetFinalizers(); len(got) != want {
				t.Errorf("%s: got the finalizers %q", merge, got)
			}
			h.Delete(one)
			h.Advance(time.Minute)
			if h.Exists(one) {
				t.Errorf("%s: the deletion waits", merge)
			}
		}
	}, knowingSized())
}

// One handler is called and retried for the object, and another one cannot be called: that is reported, and not
// recorded.
func TestMisfitsBesidesRetriedHandlers(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, once, kopf.ID("create"))
		kopf.For[*sized](r).OnCreate(ignoreSized, kopf.ID("typed"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		one.Object["spec"] = map[string]any{"size": "many"}
		h.Create(one)
		h.Advance(time.Minute)
		h.Get(one)
		if got := one.GetAnnotations(); got["kopf.zalando.org/create"] == "" || got["kopf.zalando.org/typed"] != "" {
			t.Errorf("got the records %q", got)
		}
		if got := isNotCalled(h, "typed"); got == 0 {
			t.Error("it is not reported")
		}
		h.Patch(one, `{"spec": {"size": 1}}`)
		h.Advance(2 * time.Hour)
		expectHandled(t, h, "one")
	}, knowingSized())
}

// Only the first looks of a process at its objects share a summary.
func TestLaterMisfitsOfTimersAreReported(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		kopf.For[*sized](r).Timer(func(context.Context, *sized, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		h.Restart()
		h.Advance(time.Minute)
		if before := isNotCalled(h, "timer"); before != 0 {
			t.Errorf("%d lines about an object that fits", before)
		}
		h.Patch(one, `{"spec": {"size": "many"}}`)
		h.Advance(time.Minute)
		if isNotCalled(h, "timer") == 0 {
			t.Error("it is not reported")
		}
	}, knowingSized())
}

// isNotCalled counts the lines about a handler that is not called because of the Go type.
func isNotCalled(h *kopftest.Harness, id string) (count int) {
	for _, line := range h.Logs() {
		if strings.Contains(line.Message, "is not called") && strings.Contains(line.String(), id) {
			count++
		}
	}
	return count
}
