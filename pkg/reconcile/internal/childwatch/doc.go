// Package childwatch watches the children of objects: the objects with the label of
// convergence.OwnerLabel, of the kinds and in the namespaces in which handlers have children.
//
//	Watches.Watch → Stream → reflector → Config.Replace, Config.Observe
//
// A kind is watched in the version that the cluster prefers. If that is no longer served, the
// stream of another version takes over, and if the kind is gone, so are its children.
//
// In contrast to the package watch, there is no cache: only the converger keeps what it needs.
//
// This package carries no compatibility promise.
package childwatch
