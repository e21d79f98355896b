// Package capacity decides what may run now: Permits limit the work of the framework, and
// Slots limit the calls of handlers.
//
// A pass waits for a permit, because it is short. It does not wait for a slot: a handler
// without one is not due, and has a ticket. When a slot becomes free, it is reserved for a
// ticket, and a pass over the ticket's object is requested. So handlers that wait cost
// neither a goroutine nor a write.
//
// # Invariants
//
//   - No handler holds a slot while it waits for another one, so limits cannot deadlock.
//   - A reserved slot is used or passed on by the next pass over its object.
//   - Resources take turns, so that one of them cannot starve the others.
package capacity
