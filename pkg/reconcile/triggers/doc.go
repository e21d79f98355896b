// Package triggers has the calls of handlers that are caused by something else than a change of
// their object: by its children, for example. Such calls belong to no cycle, so the object is
// not compared with a former state of it, and the calls do not hold up its cycles.
//
//	something happens → Trigger.IsPending, and a pass is requested
//	the pass          → Set.Sync, Set.Calls → Set.Begin → (the handler) → Set.End
//
// A Trigger knows what must be called. It belongs to one handler of one object, from the first
// pass in which the handler matches the object, until it does not anymore or the object is gone.
// One Trigger can have several calls, which succeed and fail independently.
//
// A Set knows the attempts of the calls. A call that succeeds leaves nothing. As long as a call
// of a handler fails, the handler has a record on the object: that of the call with the most
// attempts, however many calls fail. So after a restart, the Trigger has one call that stands
// for all, which continues with this record.
//
// # Guarantees
//
//   - What has happened before a call begins is known to the call, and what happens while it
//     runs leads to another one.
//   - A call is repeated until it succeeds, fails permanently, or exceeds its limits, as long as
//     the process lives and the handler matches the object; its record survives the process.
//   - An object without pending calls costs nothing but its triggers.
//
// This package carries no compatibility promise.
package triggers
