package indexing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
)

const temporarily = handler.ErrorsTemporary

// failTimes makes the function fail so many times, and then succeed.
func failTimes(times int, err error) func(*handler.Call) error {
	return func(i *handler.Call) error {
		if i.Attempt.Retry < times {
			return err
		}
		return nil
	}
}

// The object does not change in the meantime.
func TestObjectIsIndexedAgainAfterTheDelay(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.called("0s one a #0 after 0s")
		w.answers(failTimes(2, handler.Temporary(errBroken, 30*time.Second)))
		w.change("one", "b")
		w.has()
		w.logged(`"The object is excluded from the index for now." "object"="one" "handler"="values" "error"="broken" "delay"="30s"`)
		pass(29 * time.Second)
		w.called("0s one b #0 after 0s")
		pass(31 * time.Second)
		w.has("one=b")
		w.called("30s one b #1 after 30s", "1m0s one b #2 after 1m0s")

		// The success has reset the count.
		w.change("one", "c")
		w.called("1m0s one c #0 after 0s")
	})
}

func TestRegularErrorsUnderErrorsTemporaryWaitForTheBackoff(t *testing.T) {
	tests := map[string]struct {
		options []handler.Option
		want    string
	}{
		"the default": {nil, "1m0s"},
		"its own":     {[]handler.Option{handler.Backoff(10 * time.Second)}, "10s"},
		"zero":        {[]handler.Option{handler.Backoff(0)}, "100ms"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answers(failTimes(1, errBroken))
				w.change("one", "a")
				w.has()
				w.logged("it is excluded from the index for now.")
				pass(time.Hour)
				w.called("0s one a #0 after 0s", fmt.Sprintf("%s one a #1 after %[1]s", test.want))
				w.has("one=a")
			}, append(test.options, handler.Errors(temporarily))...)
		})
	}
}

func TestEventsDuringTheDelayAreNotIndexed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers(failTimes(1, handler.Temporary(errBroken, time.Minute)))
		w.change("one", "a")
		pass(20 * time.Second)
		w.change("one", "b")
		w.change("two", "c", "uid-3") // has its own delay
		pass(39 * time.Second)
		w.change("one", "d")
		w.called("0s one a #0 after 0s", "20s two c #0 after 0s")
		w.has()
		pass(time.Second) // what it is by then is indexed
		w.called("1m0s one d #1 after 1m0s")
		w.has("one=d")
		pass(time.Hour)
		w.called("1m20s two c #1 after 1m0s")
		w.has("one=d", "two=c")
	})
}

func TestLimits(t *testing.T) {
	tests := map[string]struct {
		option handler.Option
		want   []string
		last   string
	}{
		"retries": {
			handler.Retries(3),
			[]string{"0s one a #0 after 0s", "10s one a #1 after 10s", "20s one a #2 after 20s"},
			"handler values has used up its 3 attempts: broken",
		},
		"timeout, as soon as the next attempt would exceed it": {
			handler.Timeout(25 * time.Second),
			[]string{"0s one a #0 after 0s", "10s one a #1 after 10s", "20s one a #2 after 20s"},
			"handler values has timed out after 25s: broken",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answers(func(*handler.Call) error { return errBroken })
				w.change("one", "a")
				pass(time.Hour)
				w.change("one", "b")
				pass(time.Hour)
				w.called(test.want...)
				w.has()
				w.loggedAtLast(test.last)
			}, test.option, handler.Errors(temporarily), handler.Backoff(10*time.Second))
		})
	}
}

func TestNoRetryAfterTheDelay(t *testing.T) {
	filters := map[string]handler.Matcher{"tier": handler.None(handler.Equal("db"))}
	tests := map[string]struct {
		meanwhile func(w *world)
		want      []string // in the index
	}{
		"the object is deleted":                {func(w *world) { w.remove("one") }, nil},
		"the deletion was not reported yet":    {func(w *world) { w.put("one", nil) }, nil},
		"the object was replaced":              {func(w *world) { w.remove("one"); w.change("one", "b", "uid-2") }, []string{"one=b"}},
		"the replacement was not reported yet": {func(w *world) { w.put("one", pod("one", "b", "uid-2")) }, nil},
		"the object does not match anymore":    {func(w *world) { w.change("one", "b", "tier=db") }, nil},
		"the watch has ended":                  {func(w *world) { w.end() }, nil},
		"the indexer is closed":                {func(w *world) { w.indexer.Close() }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.answers(failTimes(1, handler.Temporary(errBroken, time.Minute)))
				w.change("one", "a")
				w.answers(func(*handler.Call) error { return nil })
				test.meanwhile(w)
				w.forget()
				pass(time.Hour)
				w.called()
				w.has(test.want...)
				w.logged()
			}, handler.Labels(filters))
		})
	}
}

func TestObjectThatMatchesAgainStartsFromScratch(t *testing.T) {
	filters := map[string]handler.Matcher{"tier": handler.Absent()}
	inBubble(t, func(w *world) {
		w.answers(failTimes(1, handler.Temporary(errBroken, time.Minute)))
		w.change("one", "a")
		w.change("one", "b", "tier=db")
		pass(time.Minute)
		w.change("one", "c")
		pass(time.Minute)
		w.called("0s one a #0 after 0s", "1m0s one c #0 after 0s", "2m0s one c #1 after 1m0s")
		w.has("one=c")
	}, handler.Labels(filters))
}

// An error because the operator exits says nothing about the object.
func TestErrorDuringShutdownIsIgnored(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.answers(func(*handler.Call) error {
			w.end()
			return context.Canceled
		})
		w.change("one", "b")
		pass(time.Hour)
		w.has("one=a")
		w.logged()
	}, handler.Errors(temporarily))
}

func TestNothingHappensAfterClose(t *testing.T) {
	inBubble(t, func(w *world) {
		w.change("one", "a")
		w.indexer.Close()
		w.change("two", "b")
		w.remove("one")
		w.has("one=a") // the caller of Close releases the index
		w.called("0s one a #0 after 0s")
	})
}

func TestOnlyFailuresAreKept(t *testing.T) {
	inBubble(t, func(w *world) {
		remembers := func(want int) {
			t.Helper()
			if got := w.indexer.Failures(); got != want {
				t.Errorf("after %s: got %d, want %d", w.elapsed(), got, want)
			}
		}
		for _, name := range []string{"one", "two", "three"} {
			w.change(name, "a")
		}
		remembers(0)
		w.answers(failTimes(1, handler.Temporary(errBroken, time.Minute)))
		w.change("one", "b")
		w.answers(func(*handler.Call) error { return handler.Permanent(errBroken) })
		w.change("two", "b")
		remembers(2)
		w.answers(func(*handler.Call) error { return nil })
		pass(time.Minute)
		remembers(1)
		w.remove("two")
		remembers(0)
	})
}
