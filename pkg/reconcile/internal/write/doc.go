// Package write is the only code that writes to handled objects.
//
// A Writer serves all objects of an engine. It keeps a State of each object between the
// passes. Each pass opens a Session, which has the latest known version of the object and
// converts updates to patches.
//
//	Open → Refresh → Flush → (detect, run handlers) → Write → … → Write
//
// An Update describes the wanted state of the object. It is converted to patches against the
// latest version as often as necessary, and decisions based on an earlier version are
// repeated. The edits of handlers wait in the State until they are written or rejected.
//
// One update is at most three patches, each bound to the version that it was computed for. The
// first has the edits of the status if it is a subresource, the second the other edits, the
// records, and the finalizer, and the third the records in the status.
//
// # Guarantees
//
//   - No change of another writer is lost: every patch is bound to a version.
//   - A success is recorded only when the edit of its handler is stored.
//   - An update that could not be written stays in the State, and must be written before
//     any other work on the object.
//   - The records of another operator are kept; an attempt has one outcome.
//   - A rejected edit fails its own handler, and the others are written.
//   - An edit for which a permission is missing fails no handler, and the outcomes of the others
//     are written.
//   - An object counts as gone only if the watch, its own response to the last write, or a
//     list says so. A later version brings it back, except after that response.
//   - An update that changes nothing sends nothing.
//   - The status is stored even if it has become a subresource since discovery, or is one no
//     longer: the responses show that. If a response says that there is no such subresource,
//     the next write of the status, alone, shows whether that is true.
//   - Edit.Done is called exactly once: when the edit is written, rejected or
//     overtaken, or when the object is gone. If Edit.Refused is set, it is called before that,
//     unless the edit is written or overtaken.
//
// # Assumptions
//
//   - No other code of this operator writes to the object with these records.
//   - Each State has one session at a time. Only the goroutine of that session calls
//     Add, Reset, and the other methods, or any goroutine if there is no session.
//   - Resource versions are comparable, as Kubernetes 1.35 and later promise. On
//     other servers only an equal version counts as fresh.
//
// # Caveats
//
//   - The state is in memory: after a crash, unwritten edits of handlers are lost
//     together with the record of their success, and the handlers run again.
//   - Handlers that write with their own client count as other writers.
//
// docs/guarantees.md describes the consequences for users.
package write
