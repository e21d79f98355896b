package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
)

func TestPreferredError(t *testing.T) {
	rejected, permanent := handler.Reject("no", 499), handler.Permanent(errors.New("never"))
	temporary, other := handler.Temporary(errors.New("later"), time.Second), io.EOF
	tests := map[string]struct {
		errors  []error
		message string
		code    int32
	}{
		"none":                                     {nil, "", 0},
		"a rejection":                              {[]error{rejected}, "no", 499},
		"any error":                                {[]error{other}, "EOF", 500},
		"a permanent error":                        {[]error{permanent}, "never", 500},
		"a temporary error":                        {[]error{temporary}, "later", 500},
		"a wrapped rejection":                      {[]error{fmt.Errorf("spec: %w", rejected)}, "spec: no", 499},
		"a rejection without a message":            {[]error{handler.Reject("", 400)}, "the request was rejected without an explanation", 400},
		"a rejection without a code":               {[]error{handler.Reject("no", 0)}, "no", 500},
		"a rejection with a code of success":       {[]error{handler.Reject("no", 200)}, "no", 500},
		"a rejection with a code that is too high": {[]error{handler.Reject("no", 1000)}, "no", 500},
		"all kinds, the preferred last":            {[]error{other, temporary, permanent, rejected}, "no", 499},
		"all kinds but a rejection":                {[]error{other, temporary, permanent}, "never", 500},
		"a temporary error and any error":          {[]error{other, temporary}, "later", 500},
		"two errors of one kind":                   {[]error{handler.Reject("first", 400), handler.Reject("second", 401)}, "first", 400},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			h.validate("admitting", admit)
			for i, err := range test.errors {
				h.validate(fmt.Sprintf("failing-%d", i), failing(err))
			}
			got := ask(t, h.serve(), "/", review(example(nil)))
			if got.Allowed != (test.message == "") {
				t.Fatalf("got %+v", got)
			}
			if !got.Allowed && (got.Result.Message != test.message || got.Result.Code != test.code || got.Result.Status != "Failure") {
				t.Errorf("got %+v", got.Result)
			}
		})
	}
}

func TestPanicAffectsOnlyItsReview(t *testing.T) {
	h := &handlers{t: t}
	calls := 0
	h.validate("panicking", func(context.Context, *handler.Call) error {
		if calls++; calls == 1 {
			panic("the secret of the operator")
		}
		return nil
	})
	w := h.serve()
	got := ask(t, w, "/panicking", review(example(nil)))
	if got.Allowed || got.Result.Code != http.StatusInternalServerError || strings.Contains(got.Result.Message, "secret") ||
		!strings.Contains(got.Result.Message, "the handler panicking panicked") {
		t.Errorf("got %+v", got.Result)
	}
	if got := ask(t, w, "/panicking", review(example(nil))); !got.Allowed {
		t.Errorf("got %+v", got.Result)
	}
}

func TestPanicOfAFilterIsAnError(t *testing.T) {
	h := &handlers{t: t}
	h.validate("filtered", admit, handlertest.When(func(*handler.Call) bool { panic("oops") }))
	if got := ask(t, h.serve(), "/filtered", review(example(nil))); got.Allowed || got.Result.Code != 500 {
		t.Errorf("got %+v", got)
	}
}

// IgnoreFailures is about an operator that cannot be called. The answer of one that can be
// called counts.
func TestIgnoreFailuresDoesNotAdmitRejectedRequests(t *testing.T) {
	for name, failure := range map[string]error{"a rejection": handler.Reject("no", 400), "an error": io.EOF} {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			h.validate("lenient", func(context.Context, *handler.Call) error { return failure }, handler.IgnoreFailures())
			if got := ask(t, h.serve(), "/", review(example(nil))); got.Allowed || len(got.Warnings) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAllHandlersAreCalledAlthoughOneFails(t *testing.T) {
	h := &handlers{t: t}
	var called []string
	record := func(id string, err error) func(context.Context, *handler.Call) error {
		return func(context.Context, *handler.Call) error { called = append(called, id); return err }
	}
	h.validate("a", record("a", io.EOF))
	h.mutate("b", record("b", io.EOF))
	h.validate("c", record("c", nil))
	h.mutate("d", record("d", nil))
	if got := ask(t, h.serve(), "/", review(example(nil))); got.Allowed || got.Result.Message != "EOF" {
		t.Errorf("got %+v", got)
	}
	if want := []string{"b", "d", "a", "c"}; !slices.Equal(called, want) {
		t.Errorf("called %v, want %v", called, want)
	}
}
