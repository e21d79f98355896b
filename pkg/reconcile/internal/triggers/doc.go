// Package triggers has the calls of handlers that are caused by something else than a change of
// their object: by its children, or by an index. Such calls belong to no cycle, so the object is
// not compared with a former state of it, and the calls do not hold up its cycles.
//
//	watch events → Children.Observe → Following.Observe ┐
//	drift of a child                → Flag.Set          ├→ Trigger.IsPending, and a pass is requested
//	an index     → Spread.Set       → Flag.Set          ┘
//	the pass     → Set.Sync, Set.Calls → Set.Begin → (the handler) → Set.End
//
// A Trigger knows what must be called (trigger.go). It belongs to one handler of one object, from
// the first pass in which the handler matches the object, until it does not anymore or the object is
// gone. One Trigger can have several calls, which succeed and fail independently: a Following has one for
// each child that has changed (following.go).
//
// A Set knows the attempts of the calls (set.go). A call that succeeds leaves nothing. As long as a
// call of a handler fails, the handler has a record on the object: that of the call with the most
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
// # Children
//
// Children is the index of children (children.go). A child has any number of links. A Link is what a
// child and its parent have in common: the kind and the uid of an owner reference, or the value of a
// label. The index only keeps links that can be followed: those to kinds that IndexOwners names, and
// those of labels that IndexLabel names. All other objects of the watched kinds cost nothing.
//
// The index changes only by watch events, and followers are told about each change, in
// order, while the index is locked. So what Of returns is exactly what the followers were
// told until then. The watch itself may be ahead of both.
//
// A child with one link takes about 110 bytes, besides its snapshot, and each parent with
// children about 320 bytes. A test counts them.
package triggers
