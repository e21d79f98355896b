// Package object holds what an operator sees of an object in the cluster.
//
// A Snapshot is an object as a cache keeps it: its JSON as packed bytes and
// the few identifying fields beside them. A cluster has many objects, and most
// of them are idle: nothing is kept parsed.
//
// A Body is the same object while somebody works with it: the JSON is decoded
// on first use and goes away with the Body. It is immutable: a handler reads it
// through the methods and through a View, and changes the object with a patch.
//
// An Essence is the part of a body that change detection looks at; a Path names
// a field. Everything else in this project is built on these five words.
package object
