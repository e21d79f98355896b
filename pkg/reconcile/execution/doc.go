// Package execution calls the handlers of one object and records their progress.
//
// Progress holds the record of every handler: loaded from the storage, updated by
// every attempt, and persisted by the engine. A Runner makes the attempts that are
// due, each within the limits of its handler; the sub-handlers of a handler run
// within its attempt, in the same way. The Runner collects what the handlers want
// to write as one Edit per handler, so that a write that the API server rejects can
// be traced to the handler that asked for it.
//
// Attempts counts the attempts of handlers whose progress is not persisted: they
// have the same limits and outcomes, but the count is kept in memory only.
//
// This package neither talks to the API server nor decides which handlers exist:
// the engine does both. This package carries no compatibility promise.
//
// Specification: Error handling; Handlers, "Sub-handlers"; Idempotence.
package execution
