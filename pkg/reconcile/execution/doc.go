// Package execution calls the handlers of one object and keeps count of it.
//
// Progress is how far each handler is: loaded from the storage, moved on by
// every attempt, and persisted by the engine. A Runner makes the attempts that
// are due, each with its limits; the sub-handlers of a handler run inside of its
// attempt, in the same way. What the handlers want to be written comes out as
// one Edit each, so that a write that the API server refuses can be
// traced to its author.
//
// Attempts counts the attempts of handlers of which nothing is persisted: it has
// the same limits and outcomes, and keeps count in memory only.
//
// Nothing here talks to the API server, and nothing here decides which handlers
// there are: that is the business of the engine.
//
// Specification: Error handling; Handlers, "Sub-handlers"; Idempotence.
package execution
