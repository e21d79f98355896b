// Package activities calls the handlers of the operator itself: when the operator starts,
// stops, logs in, or reports its health.
//
// They are retried like all handlers, but their progress is not persisted: after a restart,
// the operator calls them again.
//
// This package carries no compatibility promise.
//
// Specification: Startup; Shutdown; Health-checks; Authentication.
//
// This package carries no compatibility promise.
package activities
