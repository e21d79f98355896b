// Package plan decides what to do for an object. One look at an object is one Plan, which depends
// on its Facts only:
//
//	stored on the object ─┐
//	memory of the process ┼─ Facts ── Make ── Plan: cause, handlers, daemons and timers, finalizer
//	declared handlers ────┘
//
// Passes act on a plan. The writer makes it again for each version that it writes to, and commands make it without
// an operator. Make has no side effects and makes no requests. It runs the code of users: filters, predicates, and
// the decoding of Go types. A panic in it is a panic of Make.
//
// This package carries no compatibility promise.
package plan
