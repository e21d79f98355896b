package handler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestErrorsHaveMessagesAndWrapTheirReason(t *testing.T) {
	tests := map[string]struct {
		err       error
		text      string
		permanent bool
		wraps     error
	}{
		"a temporary error": {handler.Temporary(io.EOF, time.Second), "EOF", false, io.EOF},
		"a temporary error without an error": {
			handler.Temporary(nil, 0), "a temporary error without a message", false, nil,
		},
		"a permanent error": {handler.Permanent(io.EOF), "EOF", true, io.EOF},
		"a permanent error without an error": {
			handler.Permanent(nil), "a permanent error without a message", true, nil,
		},
		"a wrapped permanent error": {fmt.Errorf("pod: %w", handler.Permanent(io.EOF)), "pod: EOF", true, io.EOF},
		"a timeout": {
			&handler.TimeoutError{ID: "fn", Timeout: time.Minute}, "handler fn has timed out after 1m0s", true, nil,
		},
		"a timeout after an error": {
			&handler.TimeoutError{ID: "fn", Timeout: time.Minute, Err: io.EOF}, "handler fn has timed out after 1m0s: EOF", true, io.EOF,
		},
		"too many attempts": {&handler.RetriesError{ID: "fn", Retries: 3}, "handler fn has used up its 3 attempts", true, nil},
		"too many attempts, the last with an error": {
			&handler.RetriesError{ID: "fn", Retries: 3, Err: io.EOF}, "handler fn has used up its 3 attempts: EOF", true, io.EOF,
		},
		"a panic":               {&handler.PanicError{Value: "boom"}, "panic: boom", false, nil},
		"a panic with an error": {&handler.PanicError{Value: io.EOF}, "panic: EOF", false, io.EOF},
		"unfinished handlers":   {&handler.SubhandlersError{}, "some sub-handlers are not done yet", false, nil},
		"any error":             {io.EOF, "EOF", false, io.EOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.err.Error() != test.text || handler.IsPermanent(test.err) != test.permanent {
				t.Errorf("got %q, %v", test.err, handler.IsPermanent(test.err))
			}
			if test.wraps != nil && !errors.Is(test.err, test.wraps) {
				t.Errorf("%v does not wrap %v", test.err, test.wraps)
			}
		})
	}
}

func TestPanicOfHandlerIsItsError(t *testing.T) {
	var missing map[string]int
	d, err := handler.Create(kex, change(func(context.Context, *handler.Call) error { missing["a"] = 1; return nil }), handler.ID("a"))
	_, err = declared(t, d, err).Call(t.Context(), changing(d, &handler.Cause{}))
	var panicked *handler.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(string(panicked.Stack), "errors_test.go") || !strings.Contains(err.Error(), "nil map") {
		t.Errorf("got %v", err)
	}
	if stack := string(panicked.Stack); !strings.HasPrefix(stack, "github.com/kopf-go/kopf/internal/handler_test.") || strings.Contains(stack, "(*Declaration)") {
		t.Errorf("the stack has more than the handler:\n%s", stack)
	}
	d, err = handler.Watch(kex, functionOf(func(context.Context, *handler.Call) error { panic(io.EOF) }), handler.ID("a"))
	if _, err = declared(t, d, err).CallIsolated(t.Context(), handler.NewCall(d, subject(), handler.Attempt{})); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestPanicOfFilterIsAnError(t *testing.T) {
	filter := matchFuncOf(func(object.Value, *handler.Call) bool { panic("oops") })
	err := handler.WithRecover(func() error { filter.Matches(object.Value{}); return nil })
	if err == nil || err.Error() != "panic: oops" {
		t.Errorf("got %v", err)
	}
	if err := handler.WithRecover(func() error { return nil }); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestHandlerErrorsAreReturnedUnchanged(t *testing.T) {
	d, err := handler.Create(kex, change(func(context.Context, *handler.Call) error { return io.EOF }), handler.ID("a"))
	if _, err = declared(t, d, err).Call(t.Context(), changing(d, &handler.Cause{})); err != io.EOF { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
}

func TestRejectionIsPermanentOutsideAdmission(t *testing.T) {
	err := fmt.Errorf("spec: %w", handler.Reject("no", 422))
	if !handler.IsPermanent(err) || handler.HTTPStatus(err) != 422 || err.Error() != "spec: no" {
		t.Errorf("got %v, %d, %q", handler.IsPermanent(err), handler.HTTPStatus(err), err)
	}
	if status := handler.HTTPStatus(errors.New("x")); status != 500 {
		t.Errorf("got %d", status)
	}
}
