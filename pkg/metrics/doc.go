// Package metrics exposes what operators do to Prometheus; docs/metrics.md lists the
// metrics. This package carries no compatibility promise.
//
// Counters (calls of handlers, writes, errors) are incremented as things happen.
// Gauges, such as the length of the queue, are computed when metrics are collected:
// no memory is kept per object, and no work is done between collections.
//
// # Invariants
//
//   - No label has unbounded values, such as names of objects: sub-handlers are
//     counted under the handler that registers them.
//   - All operators of a process share the collectors of a registry; the label
//     "operator" distinguishes them.
//   - An operator that ended leaves no series behind.
package metrics
