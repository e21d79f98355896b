// Package storage stores what an operator must remember about an object: the state
// that was last handled (DiffBase), and the progress of its current handling cycle
// (Progress). By default, both are annotations of the object. The operator needs no
// database, and can be killed and replaced at any moment.
//
// The essence is the part of an object that change detection compares. BuildEssence
// builds it. A DiffBase stores it when all handlers have finished, and a later essence
// that differs starts a new handling cycle. Each handler of a cycle has a Record, from
// its first attempt until the cycle ends. A CycleBase stores the
// states at which handlers have ended in a cycle that takes several passes.
//
// The stored data is compatible with the operators of Kopf: given the same handler
// ids, an operator of either project can take over from the other. The formats,
// including the few that only this project uses, are described in formats.md.
//
// The storages of this package are structs, and their zero value is the default. They
// are immutable, safe for concurrent use, and make no requests: they read a body and
// write into a Patch, which the engine sends. They write only what differs from the
// body, so storing the same value again, or removing what is absent, leaves the patch
// empty, and an empty patch is not sent. They do not trust what they read, because
// anyone with access can edit an annotation: an unreadable value results in a
// BrokenError, never in a panic. To store the data elsewhere, for example in a
// database, implement the same interfaces, and Eraser; see the example of the package.
// Such a storage may be slow: it holds only its own object.
//
// Specification: Configuration ("Handling progress", "Change detection", "Storage
// transition") and Continuity.
package storage
