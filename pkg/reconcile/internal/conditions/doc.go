// Package conditions decides what the standard conditions of an object say: Ready, and, while
// they are true, Reconciling and Stalled, each with the generation that it is about.
//
// They are written when nothing is left to do at a generation. While handlers are at work, the
// conditions of an earlier generation say so already: their observedGeneration is behind.
// Only if the stored conditions would be taken for the current state, because what happens to
// the object does not change its generation, they are replaced by Reconciling.
//
// The failures of handlers outlive their cycle: another handler can succeed later, but the
// object is ready only when the failed one was called again. The Stalled condition keeps them,
// so that nothing else must be stored; see failures.go.
//
// This package does not call the API server: the writer asks for the change of the status for
// each version of the object that it writes to. Only Check reads a definition.
package conditions
