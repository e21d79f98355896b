// Package webhook answers the admission reviews of Kubernetes with the admission
// handlers of an operator.
//
// New returns an http.Handler that calls the handlers. Listening, certificates and
// telling the API server about the operator are the concern of other packages.
//
// This package carries no compatibility promise.
//
// # Paths
//
// Every handler has the path of its id, at which only that handler is called:
// "/check", or "/check/spec.size" for a handler of a field. "/validating" calls all
// validating handlers that match the review, "/mutating" all mutating ones; "/" calls
// both. A review at an unknown path gets a 404 and is not admitted: its handler does
// not exist anymore, or not yet.
//
// # One call
//
// The handlers of one review are called one after another, in the order of their declarations,
// mutating handlers first. Each mutating handler sees the changes of the earlier ones, and the
// validating handlers see the changes of all of them. All handlers are called, even if one
// fails, because the error for the user is chosen by its kind. An AdmissionError goes before a
// permanent error, a permanent error before a temporary one, and a temporary one before any
// other; of one kind, the first counts. There are no retries. The response has a patch only if
// no handler has failed.
//
// # Conversions
//
// At "/convert/NAME", the objects of the definition with the name are converted to another
// version. All of them are answered, in their order, or the review fails with the name of each
// object that cannot be converted. Conversions are answered before the operator is ready: the
// API server needs them to list the objects.
//
// # Errors
//
// A malformed request gets a 400 and an explanation, a body that is too large gets a
// 413, an unknown handler or resource gets a 404. While the operator is not ready, the
// answer is a 503, and the API server tries again. Every other answer is an
// AdmissionReview with the status 200; a panic of a handler is an error with the code
// 500 and affects only that review.
//
// The text of a handler's error goes to the user who sent the request, as in Kopf. The
// text of a panic goes to the log only, because it is not written for users. Errors of
// handlers must not contain what users must not know.
//
// # Trust
//
// Every client that reaches the listener can send reviews. A review can claim anything
// about the user and the object, and its response contains only what the handlers say.
// The memory for a review is limited by the maximum size of its body, the time by the
// timeout that the API server names, at most 30 seconds.
//
// Specification: Admission control.
package webhook
