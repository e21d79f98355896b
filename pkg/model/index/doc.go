// Package index keeps the results of indexing functions in memory: values under keys.
// Each object can have several keys.
//
// The handlers of an operator read an Index. Its engine writes it through the interface
// handler.Table. The values of an object can be found from both sides: the cell of a key
// has the values of all objects, and the holding of an object has its places in all
// cells. Entries refer to each other by position, so that the time for replacing or
// removing an object's values depends only on its number of keys, not on the size of the
// index.
//
// Specification: In-memory indexing.
package index
