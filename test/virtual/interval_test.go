package virtual

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// The interval of a timer is that of its object after each call. One that is impossible is an error of that object alone,
// which the log and an event say, and ends with a change of the object.
func TestIntervalIsThatOfTheObject(t *testing.T) {
	var mu sync.Mutex
	var began time.Time
	var calls []string
	made := func() string {
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(calls, ", ")
		calls = nil
		return all
	}
	withOperator(t, func(r *kopf.Registry) {
		r.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, fmt.Sprintf("%gs %s", time.Since(began).Seconds(), t.Name()))
			return nil
		}, kopf.ID("check"), kopf.Backoff(time.Minute), kopf.IntervalFunc(func(a kopf.Arguments) time.Duration {
			minutes, given := a.Spec().Int64("minutes")
			if !given {
				panic("no interval")
			}
			return time.Duration(minutes) * time.Minute
		}))
	}, func(t *testing.T, h *kopftest.Harness) {
		began = time.Now()
		one := newExample()
		other := newExample()
		other.SetName("other")
		for _, example := range []map[string]any{one.Object, other.Object} {
			example["spec"].(map[string]any)["minutes"] = int64(10)
		}
		h.Create(one)
		h.Advance(time.Second)
		h.Create(other)
		h.Advance(5 * time.Minute)
		h.Patch(one, `{"spec":{"minutes":7}}`) // for the interval after the next call
		h.Advance(10 * time.Minute)
		if got := made(); got != "0s one, 1s other, 600s one, 601s other" {
			t.Errorf("got %q", got)
		}

		for value, says := range map[string]string{
			"0":    "the function of kopf.IntervalFunc returned 0s: an interval must be positive",
			"-1":   "the function of kopf.IntervalFunc returned -1m0s: an interval must be positive",
			"null": "panic: no interval",
		} {
			h.Patch(one, fmt.Sprintf(`{"spec":{"minutes":%s}}`, value))
			h.Advance(20 * time.Minute)
			told := false
			for _, event := range h.Events() {
				if strings.Contains(event.Message, says) {
					told = told || event.InvolvedObject.Name == "one"
					if event.InvolvedObject.Name != "one" {
						t.Errorf("%s: got the event %q about %s", value, event.Message, event.InvolvedObject.Name)
					}
				}
			}
			if !told {
				t.Errorf("%s: no event says %q: %q", value, says, messages(h, "HandlerRetrying"))
			}
			if !logged(h, says) {
				t.Errorf("%s: the log does not say %q", value, says)
			}
		}
		h.Patch(one, `{"spec":{"minutes":60}}`)
		h.Advance(2 * time.Minute)
		made()
		h.Advance(30 * time.Minute)
		if got := made(); strings.Count(got, "other") != 3 || strings.Contains(got, "one") {
			t.Errorf("got %q: one has an interval of an hour, and the other of ten minutes", got)
		}
	})
}

// logged reports whether the error of a line of the log contains the text.
func logged(h *kopftest.Harness, text string) bool {
	for _, line := range h.Logs() {
		if line.Err != nil && strings.Contains(line.Err.Error(), text) {
			return true
		}
	}
	return false
}
