// Package activities calls the handlers of the operator as a whole: when the operator
// starts, stops, logs in, or is asked for its health.
//
// They are retried like all handlers, but their progress is not persisted: an operator
// that is started again calls them again.
//
// This package carries no compatibility promise.
//
// Specification: Startup; Shutdown; Health-checks; Authentication.
//
// This package carries no compatibility promise.
package activities
