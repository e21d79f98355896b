// Package cause detects what happened to an object.
//
// Kubernetes provides only the current state of an object. This package derives whether the
// object was created, updated, deleted, or only seen again after a restart. It does so from
// that state, from the essence that was last handled, and from whether this process has handled
// the object before.
//
// Specification: Handlers, "Events & Causes".
package cause
