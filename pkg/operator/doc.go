// Package operator runs one operator, from its declarations to its shutdown, and
// connects the engine with the admission handlers, the peering and the metrics.
//
//	NewOperator    checks the declarations and the settings
//	startUp        calls the startup handlers, after which the settings are final
//	newManager     connects to the cluster
//	newComponents  builds everything that the phases below need
//	replica.run    watches, posts events, serves reviews      every replica
//	runLeader      handles the objects, within the peering    the leader
//	cleanUp        calls the cleanup handlers                 every replica
//	shutDown       waits until nothing runs any longer
//
// A controller-runtime manager runs the replica and the leader. Operator.Run makes one;
// Add takes the manager of another program, which calls the startup handlers when it
// starts, and does without newManager and shutDown.
//
// # Guarantees
//
//   - Nothing is watched or served before the startup handlers have succeeded.
//   - Shutdown has an order: the handlers of objects, the daemons, the configurations of
//     the admission handlers, the cleanup handlers, the entry among the peers, the lease.
//     The last two let others begin.
//   - A lost lease cancels all handlers at once.
//   - When Run returns, nothing of the operator is running, except for code that ignores
//     its context. Run returns an error in that case.
//
// This package carries no compatibility promise.
//
// Specification: Startup; Shutdown; Embedding.
package operator
