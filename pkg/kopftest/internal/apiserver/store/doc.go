// Package store keeps the objects of an API server in memory, with their history.
//
// As in etcd, all resources share one counter of versions, and every write has an event
// that watches can still read later. Compact forgets old events: reading them is then an
// error, which the API reports as 410.
//
// Invariants: a stored object is never modified; an event is visible together with its
// object; events of one resource have increasing versions.
package store
