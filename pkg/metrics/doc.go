// Package metrics tells Prometheus what operators do. docs/metrics.md has the list.
//
// What happens is counted when it happens: calls of handlers, writes, errors. What
// is, such as the length of the queue, is looked up when somebody asks: nothing is
// kept for an object, and nothing is done while nobody asks.
//
// # Invariants
//
//   - No label has the name of an object, or of anything else that has no bound:
//     sub-handlers are counted under the handler that registers them.
//   - All operators of a process share the collectors of a registry; the label
//     "operator" tells them apart.
//   - What is left of an operator that has ended is nothing.
//
// This package carries no compatibility promise.
package metrics
