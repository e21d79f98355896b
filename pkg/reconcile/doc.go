// Package reconcile is the engine: it brings what happens in the cluster to the
// handlers, and what the handlers have done back into the cluster.
//
// An Engine watches the resources that its handlers select (internal/watch), keeps the
// objects as compact snapshots, and lets a pool of workers make passes over them
// (workers.go, internal/queue). A pass is the unit of work, and pass.go is its story
// from top to bottom: observe the object, detect what has happened, execute the handlers
// that are due (execution), record their outcomes in as few writes as possible
// (internal/write, internal/record), and say when to come back. Daemons and timers run
// beside the passes (daemons); their edits are written by them.
//
// # Invariants
//
//   - One pass at a time for one object; many objects in parallel.
//   - Only the pass writes to the object, through the writer.
//   - No pass starts on a version that is older than the operator's own last write, or
//     while it is not known whether that write was committed.
//   - What handlers have done is never forgotten while the process lives: an update
//     that could not be written stays in memory until it can.
//   - A pass that finds nothing to do writes nothing.
//
// docs/guarantees.md says what is guaranteed on this ground, and what cannot be.
//
// This package carries no compatibility promise.
package reconcile
