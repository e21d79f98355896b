// Package operator is the life of one operator, from its start to its end: what the
// engine, the admission handlers, the peering and everything else have to do with each
// other.
//
//	startUp   the startup handlers                       every replica
//	stand     watches, events, admission, health         every replica
//	lead      peering around the work on the objects     the leader
//	cleanUp   the cleanup handlers                       every replica
//
// A controller-runtime manager runs stand and lead: one that Run makes, or one of
// somebody else, to which Add adds the operator.
//
// # Guarantees
//
//   - Nothing is watched or served before the startup handlers have succeeded.
//   - The end has an order: the handlers of objects, the daemons, the cleanup, the entry
//     among the peers, the lease. What follows is let in by the last two.
//   - A lost lease cancels all handlers at once.
//   - Nothing of an operator goes on after Run, but for code that does not heed its
//     context; Run says so then.
//
// Specification: Startup; Shutdown; Embedding.
package operator
