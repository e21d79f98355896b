// Package call calls the handlers of objects, keeps their progress, and limits how many of them run at
// the same time.
//
//	Progress ── which handlers are due ── Runner ── Call ── Outcome, Edit
//	Slots    ── which of them may run ──────┘
//
// Progress holds the record of every handler: loaded from the storage, updated by
// every attempt, and persisted by the engine. A Runner makes the attempts that are
// due, each within the limits of its handler; the sub-handlers of a handler run
// within its attempt, in the same way. The Runner collects what the handlers want
// to write as one Edit per handler, so that a write that the API server rejects can
// be traced to the handler that asked for it.
//
// Handlers can follow others (kopf.After): order.go says whose turn it is, and skips those whose
// turn never comes.
//
// Attempts counts the attempts of handlers whose progress is not persisted: they
// have the same limits and outcomes, but the count is kept in memory only.
//
// Slots limit the calls of handlers, and Permits limit the work of the framework. A pass
// waits for a permit, because it is short. It does not wait for a slot: a handler without
// one is not due, and has a ticket. When a slot becomes free, it is reserved for a ticket,
// and a pass over the ticket's object is requested. So handlers that wait cost neither a
// goroutine nor a write.
//
// # Invariants
//
//   - No handler holds a slot while it waits for another one, so limits cannot deadlock.
//   - A reserved slot is used or passed on by the next pass over its object.
//   - Resources take turns, so that one of them cannot starve the others.
//
// This package neither talks to the API server nor decides which handlers exist:
// the engine does both. This package carries no compatibility promise.
//
// Specification: Error handling; Handlers, "Sub-handlers"; Idempotence.
package call
