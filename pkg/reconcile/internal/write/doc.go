// Package write is the only code that writes to handled objects.
//
// A Writer serves all objects of an engine. Of each object it keeps a State between
// the passes, and for each pass it opens a Session, which knows the freshest version
// of the object and turns updates into patches.
//
//	Open → Refresh → Flush → (detect, run handlers) → Write → … → Write
//
// An Update says what must become true of the object, not how: it is turned into
// patches against whatever version is the freshest, as often as it takes, and what
// was decided on an earlier version is decided again on that one. What handlers want
// to be written, their edits, waits in the State until it is written or rejected.
//
// One update is at most three patches, each bound to the version that it was
// computed for: the edits' part of the status, where that is a subresource; then the
// rest of the edits, the records and the finalizer; then records in the status.
//
// # Guarantees
//
//   - Nothing of others is lost: every patch is bound to a version.
//   - A success is recorded only when the edit of its handler is stored.
//   - An update that could not be written stays in the State, and nothing else
//     happens to the object until it is.
//   - What another operator has recorded stands; an attempt has one outcome.
//   - A rejected edit fails its own handler, and the others are written.
//   - An update that changes nothing sends nothing.
//   - Edit.Done is called exactly once: when the edit is written, rejected or
//     overtaken, or when the object is gone.
//
// # Assumptions
//
//   - No other code of this operator writes to the object with these records.
//   - One session per State at a time; Add, Reset and the others are called by the
//     goroutine of that session, or by none.
//   - Resource versions are comparable, as Kubernetes 1.35 and later promise. On
//     other servers only an equal version counts as fresh.
//
// # Caveats
//
//   - The state is in memory: after a crash, the edits of handlers that were not
//     written are lost with the record of their success, and the handlers run again.
//   - Handlers that write with a client of their own are others.
//
// docs/guarantees.md says what follows from this for users.
package write
