// Package activities calls the handlers of the operator as a whole: when it
// starts, when it ends, when it logs in, and when somebody asks for its health.
//
// They are retried as all handlers are, but nothing of them is persisted: an
// operator that is started again begins again.
//
// Specification: Startup; Shutdown; Health-checks; Authentication.
//
// This package carries no compatibility promise.
package activities
