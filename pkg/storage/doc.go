// Package storage keeps what an operator must remember of an object: the state
// that was handled last (a DiffBase), and the progress of the handling that is
// under way (a Progress). By default both are annotations of the object itself:
// an operator needs no database, and can be killed and replaced at any moment.
//
// The essence is the part of an object that change detection looks at.
// BuildEssence makes it; a DiffBase stores it when all handlers are done, and a
// later essence that differs starts a new handling cycle. The handlers of a cycle
// have one Record each, from their first attempt until the cycle ends. CycleBase
// holds the essence with which a longer cycle has begun.
//
// What is stored is shared with the operators of Kopf: with the same handler ids,
// one of either kind can go on where one of the other kind has stopped. The
// formats, and the few that are only ours, are written down in formats.md.
//
// The storages here are structs whose zero value is the default. They are
// immutable, safe for concurrent use, and make no requests: they read a body and
// write into a Patch, which the engine sends. What they write is only what
// differs from the body: to store the same once more, or to remove what is not
// there, leaves the patch empty, and an empty patch is not sent. What they read is
// untrusted, as anybody may edit an annotation: a value that makes no sense is a
// BrokenError, never a crash. Users' own storages, over a database for example,
// implement the same interfaces; see the example of the package.
//
// Specification: Configuration ("Handling progress", "Change detection", "Storage
// transition") and Continuity.
package storage
