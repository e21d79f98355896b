package handler

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrorsMode says how to treat an error that a handler returns without saying whether
// it is temporary or permanent.
//
// Specification: Error handling, "Regular errors".
type ErrorsMode int

const (
	// ErrorsTemporary retries after the backoff; this is the default.
	ErrorsTemporary ErrorsMode = iota
	// ErrorsPermanent fails the handler at once.
	ErrorsPermanent
	// ErrorsIgnored logs the error and takes the handler for succeeded.
	ErrorsIgnored
)

// TemporaryError asks for another attempt after a delay.
type TemporaryError struct {
	Err   error
	Delay time.Duration // until the next attempt; 0: at once
}

// Temporary makes an error that asks for another attempt after the delay.
func Temporary(err error, delay time.Duration) error { return &TemporaryError{Err: err, Delay: delay} }

func (e *TemporaryError) Error() string {
	return messageOf(e.Err, "a temporary error without a message")
}

// Unwrap is the error that was declared temporary.
func (e *TemporaryError) Unwrap() error { return e.Err }

// PermanentError says that more attempts make no sense.
type PermanentError struct{ Err error }

// Permanent makes an error after which the handler is not called again for
// this change.
func Permanent(err error) error { return &PermanentError{Err: err} }

func (e *PermanentError) Error() string {
	return messageOf(e.Err, "a permanent error without a message")
}

// Unwrap is the error that was declared permanent.
func (e *PermanentError) Unwrap() error { return e.Err }

// TimeoutError fails a handler that has not succeeded within its timeout, or
// that cannot, because the next attempt would come too late. It wraps the
// error of the last attempt, if there was one.
type TimeoutError struct {
	ID      string
	Timeout time.Duration
	Err     error
}

func (e *TimeoutError) Error() string {
	return appendError(fmt.Sprintf("handler %s has timed out after %s", e.ID, e.Timeout), e.Err)
}

// Unwrap is the error of the last attempt, or nil.
func (e *TimeoutError) Unwrap() error { return e.Err }

// RetriesError fails a handler that has used up its attempts. It wraps the
// error of the last attempt, if there was one.
type RetriesError struct {
	ID      string
	Retries int
	Err     error
}

func (e *RetriesError) Error() string {
	return appendError(fmt.Sprintf("handler %s has used up its %d attempts", e.ID, e.Retries), e.Err)
}

// Unwrap is the error of the last attempt, or nil.
func (e *RetriesError) Unwrap() error { return e.Err }

// PanicError is a panic of a handler, with the stack of the place where it
// happened. It counts as a regular error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the error that the handler panicked with, if it was one.
func (e *PanicError) Unwrap() error { err, _ := e.Value.(error); return err }

// StackValues is the place of a panic as values for a log line; nothing of other errors.
func StackValues(err error) []any {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		return []any{"stack", string(panicked.Stack)}
	}
	return nil
}

// SubhandlersError says that some sub-handlers of a handler are not done yet. A
// handler that executes them in place returns it as it is.
type SubhandlersError struct {
	Delay time.Duration // until the first of them is due
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

// AdmissionError rejects a request, with a text for the user and a code. Everywhere
// else than in admission handlers it is a PermanentError.
//
// Specification: Admission control, "Admission errors".
type AdmissionError struct {
	// Message is what the user gets to read.
	Message string
	// Code is the HTTP status, from 400 to 599; anything else is 500.
	Code int
}

// Reject makes an error that rejects the request under review.
func Reject(message string, code int) error { return &AdmissionError{Message: message, Code: code} }

func (e *AdmissionError) Error() string {
	return cmp.Or(e.Message, "the request was rejected without an explanation")
}

// HTTPStatus is the HTTP status of a request that was rejected by the error.
func HTTPStatus(err error) int {
	var rejection *AdmissionError
	if errors.As(err, &rejection) && rejection.Code >= http.StatusBadRequest && rejection.Code <= lastStatus {
		return rejection.Code
	}
	return http.StatusInternalServerError
}

// lastStatus is the last one that HTTP has a meaning for.
const lastStatus = 599
