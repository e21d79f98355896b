// Package operator runs one operator from its declarations to its shutdown, and connects the
// engine with the admission handlers, the peering, and the metrics.
//
//	NewOperator    checks the declarations and the settings
//	startUp        calls the startup handlers, after which the settings are final
//	newManager     connects to the cluster
//	newComponents  builds everything that the phases below need
//	replica.run    watches, posts events, serves reviews      every replica
//	runLeader      handles the objects, within the peering    the leader
//	cleanUp        calls the cleanup handlers                 every replica
//	shutDown       waits until everything has stopped
//
// A controller-runtime manager runs the replica and the leader. Operator.Run creates one.
// Add uses the manager of another program, which calls the startup handlers when it starts,
// and skips newManager and shutDown.
//
// # Guarantees
//
//   - Nothing is watched or served before the startup handlers have succeeded.
//   - Shutdown is ordered: the handlers of objects, the daemons, the configurations of
//     the admission handlers, the cleanup handlers, the entry in the peering, the lease.
//     After the last two, other operators can start to work.
//   - A lost lease cancels all handlers at once.
//   - When Run returns, nothing of the operator is running, except for code that ignores
//     its context. Run returns an error in that case.
//
// This package carries no compatibility promise.
//
// Specification: Startup; Shutdown; Embedding.
package operator
