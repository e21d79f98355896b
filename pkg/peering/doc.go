// Package peering lets operators of the same objects know of each other: the one with
// the highest priority is active, the others are paused. Developers use it to suppress
// the deployed operator for a while, administrators to freeze all operators from the
// command line, and a new operator to take over from an old one.
//
// # How it works
//
// The operators meet in the status of an object, the peering. Each operator keeps one
// entry there, under its identity: its priority, when it was seen last, and how long the
// entry is valid. Each operator watches the object and makes its own decision with
// Decide, from the same entries and by the same rules. There is no election, and no
// operator has to respond.
//
//	status:
//	  user@host/20201231235959/abcdef:
//	    priority: 0
//	    lastseen: "2020-12-31T23:59:59.123456+00:00"
//	    lifetime: 60
//
// The entries are those of Kopf: operators of both kinds see each other. The resource is in
// the API group kopf.dev, in the old one zalando.org, or in both. Then the operators take
// part in the peerings of both groups, and an operator in either of them can pause them.
//
// # Invariants
//
// An operator writes only its own entry, and removes the entries of dead operators. It
// removes them under a precondition, so that an operator that has just renewed its entry
// keeps it. When a peer that pauses an operator becomes silent, the operator stays paused
// until a fresh read confirms that the peer is dead: the operator itself may have lost
// its connection. The clocks of the machines must agree to within a few seconds.
//
// Peering is not leader election: replicas of one deployment use leases, and only their
// leader has an entry.
//
// This package carries no compatibility promise.
//
// Specification: Peering.
package peering
