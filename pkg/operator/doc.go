// Package operator runs one operator from its declarations to its shutdown, and connects the
// engine with the admission handlers, the peering, and the metrics.
//
// An Operator is what is declared. A replica is what one process runs of it, from the connection
// to the shutdown. Run starts an operator in this order:
//
//	NewOperator         checks the declarations and the settings
//	Operator.startUp    calls the startup handlers, after which the settings are final
//	newManager          connects to the cluster
//	newReplica          builds the engine, the admission, the peering, and the recorder of events
//	replica.run         watches, posts events, serves reviews and health checks: every replica
//	replica.runLeader   announces itself to its peers, publishes the webhooks, handles the objects: the leader
//
// It stops in this order:
//
//	Engine.Work         handlers, daemons, and timers return, and their edits are written
//	admission.maintain  the webhooks are removed, and reviews go on until no API server sends any
//	Operator.cleanUp    calls the cleanup handlers, of each replica
//	peering             the entry of the leader is removed
//	the manager         releases the lease
//	replica.shutDown    waits until everything has stopped
//
// A controller-runtime manager runs the replica and the leader. Run creates one. Add uses the
// manager of another program, which calls the startup handlers when it starts, and skips
// newManager and shutDown.
//
// # Guarantees
//
//   - Nothing is watched or served before the startup handlers have succeeded.
//   - The order of the shutdown: after the removal of the entry in the peering and the release of
//     the lease, other operators can start to work.
//   - A lost lease cancels all handlers at once.
//   - When Run returns, nothing of the operator is running, except for code that ignores
//     its context. Run returns an error in that case.
//
// This package carries no compatibility promise.
//
// Specification: Startup; Shutdown; Embedding; Health-checks; Authentication.
package operator
