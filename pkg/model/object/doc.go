// Package object has the types in which an operator reads an object of the cluster.
//
// A Snapshot is an object as a cache keeps it: its JSON, compressed, and the few
// identifying fields. A cluster has many objects, and most of them are idle, so
// nothing is kept decoded.
//
// A Body is the same object while it is used: the JSON is decoded on first use and
// freed with the Body. It is immutable: a handler reads it through its methods and
// through a View, and changes the object with a patch.
//
// An Essence is the part of a body that change detection compares; a Path names a
// field.
//
// The compact cache is kept, with its own decoder and with s2: decoded maps would take
// several times the memory, and idle objects are most of a cache. Objects are decoded
// for every event, and the decoder takes a third of the time of sigs.k8s.io/json.
package object
