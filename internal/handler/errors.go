package handler

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrorsMode defines how to treat regular errors: those that a handler returns without
// marking them as temporary or permanent.
//
// Specification: Error handling, "Regular errors".
type ErrorsMode int

const (
	// ErrorsTemporary retries after the backoff. This is the default.
	ErrorsTemporary ErrorsMode = iota
	// ErrorsPermanent fails the handler immediately.
	ErrorsPermanent
	// ErrorsIgnored logs the error and treats the handler as successful.
	ErrorsIgnored
)

// ErrExited is the error of a handler, or of other code of users, that has ended its goroutine
// instead of returning. It is retried like other errors.
var ErrExited = errors.New("the goroutine was ended by runtime.Goexit, which t.FailNow and similar functions of tests call: return an error instead")

// ErrGone means that an edit cannot be written, because the object does not exist anymore, is released for its deletion,
// or is not watched anymore.
var ErrGone = errors.New("the object does not exist anymore, or is not watched anymore")

// ErrCanceled ends a run whose context is canceled while a handler is running.
// That attempt does not count: it is made again later.
var ErrCanceled = errors.New("the handler was canceled because the operator is stopping")

// Interruption is returned by the code around a handler, to end the run instead of the attempt.
type Interruption struct{ Err error }

// Error returns the text of the reason.
func (i *Interruption) Error() string { return i.Err.Error() }

// Unwrap returns the reason.
func (i *Interruption) Unwrap() error { return i.Err }

// WriteError means that the API server has refused an edit of a daemon, or that it cannot be computed.
type WriteError struct {
	ID       string // of the daemon
	Resource string
	Name     types.NamespacedName // of the object
	Err      error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("what the daemon %s has written to the object %s of %s is refused: %v", e.ID, strings.TrimPrefix(e.Name.String(), "/"), e.Resource, e.Err)
}

// Unwrap returns the response of the API server.
func (e *WriteError) Unwrap() error { return e.Err }

// TemporaryError requests another attempt after a delay.
type TemporaryError struct {
	Err   error
	Delay time.Duration // until the next attempt; 0 for immediately
}

// Temporary returns an error that requests another attempt after the delay.
func Temporary(err error, delay time.Duration) error { return &TemporaryError{Err: err, Delay: delay} }

func (e *TemporaryError) Error() string {
	return messageOf(e.Err, "a temporary error without a message")
}

// Unwrap returns the wrapped error.
func (e *TemporaryError) Unwrap() error { return e.Err }

// PermanentError means that retrying is useless.
type PermanentError struct{ Err error }

// Permanent returns an error after which the handler is not called again for this
// change.
func Permanent(err error) error { return &PermanentError{Err: err} }

func (e *PermanentError) Error() string {
	return messageOf(e.Err, "a permanent error without a message")
}

// Unwrap returns the wrapped error.
func (e *PermanentError) Unwrap() error { return e.Err }

// TimeoutError fails a handler that has not succeeded within its timeout, or whose next
// attempt would come too late. It wraps the error of the last attempt, if any.
type TimeoutError struct {
	ID      string
	Timeout time.Duration
	Err     error
}

func (e *TimeoutError) Error() string {
	return appendError(fmt.Sprintf("handler %s has timed out after %s", e.ID, e.Timeout), e.Err)
}

// Unwrap returns the error of the last attempt, or nil.
func (e *TimeoutError) Unwrap() error { return e.Err }

// RetriesError fails a handler that has used all its attempts. It wraps the error of the
// last attempt, if any.
type RetriesError struct {
	ID      string
	Retries int
	Err     error
}

func (e *RetriesError) Error() string {
	return appendError(fmt.Sprintf("handler %s has used up its %d attempts", e.ID, e.Retries), e.Err)
}

// Unwrap returns the error of the last attempt, or nil.
func (e *RetriesError) Unwrap() error { return e.Err }

// PanicError is a panic of a handler with its stack. It counts as a regular error.
type PanicError struct {
	Value any
	// Stack begins at the line that panicked, and ends with the handler.
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the error that the handler panicked with, if the value is an error.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// StackValues returns the stack of a panic as values for a log line, or nothing for
// other errors.
func StackValues(err error) []any {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return []any{"stack", string(panicked.Stack)}
	}
	return nil
}

// SubhandlersError means that some sub-handlers of a handler are not done yet. A handler
// that calls Execute must return it unchanged.
type SubhandlersError struct {
	Delay time.Duration // until the next of them is due
}

func (e *SubhandlersError) Error() string { return "some sub-handlers are not done yet" }

// IsPermanent reports whether the error ends a handler for good.
func IsPermanent(err error) bool {
	var permanent *PermanentError
	var rejection *AdmissionError
	var timeout *TimeoutError
	var retries *RetriesError
	return errors.As(err, &permanent) || errors.As(err, &rejection) || errors.As(err, &timeout) || errors.As(err, &retries)
}

func messageOf(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}

func appendError(text string, err error) string {
	if err == nil {
		return text
	}
	return text + ": " + err.Error()
}

// AdmissionError rejects a request with a message for the user and a status code.
// Outside admission handlers, it counts as a PermanentError.
//
// Specification: Admission control, "Admission errors".
type AdmissionError struct {
	// Message is shown to the user.
	Message string
	// Code is the HTTP status from 400 to 599. Any other value means 500.
	Code int
}

// Reject returns an error that rejects the request under review.
func Reject(message string, code int) error { return &AdmissionError{Message: message, Code: code} }

func (e *AdmissionError) Error() string {
	return cmp.Or(e.Message, "the request was rejected without an explanation")
}

// HTTPStatus returns the HTTP status of a request that was rejected with the error.
func HTTPStatus(err error) int {
	var rejection *AdmissionError
	if errors.As(err, &rejection) && rejection.Code >= http.StatusBadRequest && rejection.Code <= lastStatus {
		return rejection.Code
	}
	return http.StatusInternalServerError
}

// lastStatus is the highest HTTP status.
const lastStatus = 599

// UnavailableError means that a filter uses what exists only in a running operator, such as an
// index or a memo, so that it cannot be evaluated here. It is the value of a panic in commands that
// look at objects without an operator.
type UnavailableError struct {
	What string // "an index"
}

func (e *UnavailableError) Error() string {
	return "it uses " + e.What + ", which exists only in a running operator"
}
