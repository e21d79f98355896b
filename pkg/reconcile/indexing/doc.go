// Package indexing fills the indices of an operator: it calls the indexing
// functions for the objects that the watches bring, and keeps what an index needs
// to know of objects for which its function fails.
//
// An Indexer is for the handlers of one resource. The watch calls it before
// anything else happens for an event (Seen, Gone), so that every other handler
// finds in the indices what it finds in the cluster. There is nothing in it of
// objects that are indexed well.
//
// An object for which the function fails is out of the index until its pause is
// over, or for ever, unless errors are ignored. Unlike in the specification, it is
// indexed again when the pause is over, and not only at its next event, which may
// never come.
//
// Specification: In-memory indexing, "Errors in indexing".
package indexing
