// Package peering makes operators that serve the same objects know of each other:
// the one with the highest priority is active, the others are paused. A developer
// can so suppress the deployed operator for a while, a person can freeze all of
// them from the command line, and a new operator can take over from an old one.
//
// # How it works
//
// The operators meet in the status of an object, the peering. Each of them keeps
// an entry there, under its identity: its priority, when it was seen last, and how
// long that is to be believed. Each watches the object, and decides by itself with
// Decide, from the same entries and the same rules. Nobody is elected, and nobody
// has to answer.
//
//	status:
//	  user@host/20201231235959/abcdef:
//	    priority: 0
//	    lastseen: "2020-12-31T23:59:59.123456+00:00"
//	    lifetime: 60
//
// These are the entries of Kopf: operators of both kinds see each other.
//
// # Invariants
//
// Only the own entry is written, and those of the dead are removed; the latter
// under a precondition, so that nobody is buried who has just given a sign of
// life. While a peer that has priority is silent, its death is believed only after
// a fresh read: an operator that has lost its own connection stays paused. The
// clocks of the machines must agree to within some seconds.
//
// This is no leader election: for replicas of one deployment there are leases,
// and of these replicas only the leader is to have an entry.
//
// Specification: Peering.
package peering
