// Package revision knows under which revision of a handler each object was handled, and which
// objects may be handled again under a new one.
//
// Marks are stored in one annotation of the object, by the write that ends the cycle of the
// handler, and only for handlers with a revision. Everything else follows from them: Rollouts
// counts the objects of a handler by their marks, and lets the next ones begin when the plan of
// the rollout allows it. So a restart continues where the last process stopped.
//
// This package does not call the API server, and asks for passes through a function.
package revision
