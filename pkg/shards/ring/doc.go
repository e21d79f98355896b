// Package ring lets the replicas of an operator agree by Leases on which of them handles which shard.
//
// # The Leases
//
// All are in one namespace, have one label, and are written on the version that the writer has seen, so that of
// two writers one fails:
//
//   - The gate has the name that leader election would use. While shards are used, its holder is the division ("16
//     shards by uid"), and the replicas renew it in turn. So replicas that elect a leader, and replicas with another
//     number of shards, exclude these ones, and are excluded.
//   - Each replica has a Lease, as long as it wants shards. A replica writes it, then the gate, and only then takes shards.
//   - Each shard has a Lease, which client-go's leader election holds. An elector runs only while a shard is assigned to
//     this replica and can be had, or is held.
//
// A Lease counts as expired if this process has not seen it change for as long as it says, even if it was deleted meanwhile.
// Clocks of two machines are never compared.
//
// # The course of things
//
//	reflector → store → view ─┐             ┌→ tenure: elector, Config.Hold   (one per shard)
//	                          ├→ decide ────┤
//	attend: member and gate ──┘             └→ removal of what the dead have left
//
// decide compares what shards.Assign says about the members that are alive with what this replica holds. It runs after
// every change of a Lease, and when the next one expires. It waits for nothing: requests, and the code that handles a
// shard, run in other goroutines.
//
// # The requests
//
// A Lease is renewed after 30 to 50 % of the RenewDeadline, by chance, so that renewals spread; attempts that fail are repeated
// after a RetryPeriod. With the default times of settings.Replicas and three replicas, that is about 4.3 writes a second for
// 16 shards, and 14.1 for 64. Each replica watches all the Leases, so it is sent one event for each of the writes. A test
// counts them.
//
// This package carries no compatibility promise.
package ring
