// Package reconcile is the engine: it brings what happens in the cluster to the
// handlers, and what the handlers have done back into the cluster.
//
// An Engine watches the resources that its handlers select, keeps the objects
// as compact snapshots, and lets a pool of workers make passes over them. A pass
// is the unit of work, and pass.go is its story from top to bottom: observe the
// object, detect what has happened, run the handlers that are due, record what
// has come of it in as few writes as possible, and say when to come back.
//
// # Invariants
//
//   - One pass at a time for one object; many objects in parallel.
//   - Only the pass writes to the object, through the writer (write.go).
//   - No pass starts on a version that is older than the operator's own last
//     write, or while it is not known whether that write was committed.
//   - What handlers have done is never forgotten while the process lives: an
//     intent that could not be written stays in memory until it can.
//   - A pass that finds nothing to do writes nothing.
//
// What is guaranteed on this ground, and what nobody can guarantee, is in
// docs/guarantees.md.
package reconcile
