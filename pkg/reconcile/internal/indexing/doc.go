// Package indexing fills the indices of an operator: it calls the indexing functions
// for the objects that the watches deliver, and keeps track of the objects for which
// a function fails.
//
// An Indexer serves the handlers of one resource. The watch calls it before anything
// else happens to an event (Update, Remove), so that all other handlers find in the
// indices what they find in the cluster. The Indexer keeps nothing about objects that
// are indexed successfully.
//
// An object for which the function fails is excluded from the index until the delay of
// its error is over, or for good, unless errors are ignored. Contrary to the
// specification, the object is indexed again when the delay is over, and not only at
// its next event, which may never come.
//
// This package carries no compatibility promise.
//
// Specification: In-memory indexing, "Errors in indexing".
package indexing
