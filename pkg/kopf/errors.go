package kopf

import (
	"time"

	"github.com/kopf-go/kopf/internal/handler"
)

// Temporary returns an error that asks for another attempt after the delay. Without a
// delay, the next attempt follows at once.
//
// Specification: Error handling, "Temporary errors".
func Temporary(err error, delay time.Duration) error { return handler.Temporary(err, delay) }

// Permanent returns an error after which the handler is not called again for this change.
//
// Specification: Error handling, "Permanent errors".
func Permanent(err error) error { return handler.Permanent(err) }

// TemporaryError asks for another attempt; see Temporary.
type TemporaryError = handler.TemporaryError

// PermanentError ends the attempts; see Permanent.
type PermanentError = handler.PermanentError

// HandlerTimeoutError fails a handler whose timeout has expired.
type HandlerTimeoutError = handler.TimeoutError

// HandlerRetriesError fails a handler that has used up its attempts.
type HandlerRetriesError = handler.RetriesError

// WriteError means that the API server has refused what a daemon has written by Task.Write.
type WriteError = handler.WriteError

// ErrGone is the error of Task.Write if the object does not exist anymore, or is not watched anymore.
var ErrGone = handler.ErrGone

// MisfitError means that an object does not fit the Go type of a handler.
type MisfitError = handler.MisfitError

// Reject returns an error for admission handlers that rejects a request, with a message for
// the user and an HTTP status from 400 to 599. Any other error also rejects the request,
// with its text and the status 500.
//
// Specification: Admission control, "Admission errors".
func Reject(message string, code int) error { return handler.Reject(message, code) }

// AdmissionError rejects the request of a user; see Reject.
type AdmissionError = handler.AdmissionError

// ErrorsMode is how to treat errors that are neither temporary nor permanent; see Errors.
type ErrorsMode = handler.ErrorsMode

// How to treat errors that are neither temporary nor permanent: try again after the
// backoff, give up, or log the error and continue as if the handler had succeeded.
const (
	ErrorsTemporary = handler.ErrorsTemporary
	ErrorsPermanent = handler.ErrorsPermanent
	ErrorsIgnored   = handler.ErrorsIgnored
)
