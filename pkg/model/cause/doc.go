// Package cause tells what happened to an object.
//
// Kubernetes says only that an object is there in some state. Whether it was
// created, updated, deleted, or merely seen again after a restart, follows from
// that state, from the essence that was handled last, and from whether this
// process has handled the object before.
//
// Specification: Handlers, "Events & Causes".
package cause
