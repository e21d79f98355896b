// Package reconcile contains the engine: it calls the handlers for what happens in the
// cluster, and writes their results back to the cluster.
//
// An Engine watches the resources that its handlers select (internal/watch), keeps the
// objects as compact snapshots, and lets a pool of workers make passes over them
// (workers.go, internal/queue). A pass is the unit of work. Read pass.go from top to
// bottom: a pass observes the object, detects what has happened, executes the handlers that
// are due (execution), records their outcomes in as few writes as possible
// (internal/write, internal/record), and returns when the next pass is due. Daemons and
// timers run alongside the passes (daemons), which write their edits.
//
// # Invariants
//
//   - Each object has one pass at a time. Different objects are handled in parallel.
//   - Only the pass writes to the object, through the writer.
//   - No pass starts with a version that is older than the operator's own last write, or
//     while the operator does not know whether that write was committed.
//   - The outcomes of handlers are never lost while the process lives: an update that
//     could not be written stays in memory until it can.
//   - A pass that finds nothing to do writes nothing.
//
// docs/guarantees.md describes the resulting guarantees and their limits.
//
// This package carries no compatibility promise.
package reconcile
