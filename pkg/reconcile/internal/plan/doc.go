// Package plan decides what to do for an object. One look at an object is one Plan, which depends
// on its Facts only:
//
//	stored on the object ─┐
//	memory of the process ┼─ Facts ── Make ── Plan: cause, handlers, daemons and timers, finalizer
//	declared handlers ────┘
//
// Passes act on a plan. What a write does besides storing the outcomes of handlers is a Decision, which the
// plan makes too; the writer asks for both again for each version that it writes to. Commands make plans without
// an operator. Make has no side effects and makes no requests. It runs the code of users: filters, predicates, and
// the decoding of Go types. A panic in it is a panic of Make.
//
// This package carries no compatibility promise.
package plan
