// Package index keeps in memory what indexing functions have found in the objects
// of a cluster: values under keys, several of either per object.
//
// An Index is read by the handlers of an operator, and written by its engine,
// which knows it as a handler.Table. What an object has put into it is found
// again from either side: the cell of a key has the values of all objects, and
// the holding of an object has its places in all cells. Entries point to each
// other by position, so that an object's values are replaced or removed in as many
// steps as the object has keys, however large the index is.
//
// Specification: In-memory indexing.
package index
