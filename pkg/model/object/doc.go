// Package object contains the types in which an operator reads objects of the cluster.
//
// A Snapshot is an object in the cache: its compressed JSON and a few identifying
// fields. A cluster has many objects, and most of them are idle, so the cache keeps
// nothing decoded.
//
// A Body is an object in use: its JSON is decoded on first use, and freed with the Body.
// It is immutable: handlers read it through its methods and through a View, and change
// the object with a patch.
//
// An Essence is the part of a body that change detection compares. A Path names a field.
//
// The cache is compact because decoded maps would take several times the memory, and most
// cached objects are idle. It uses s2 for compression, and a custom decoder, because
// objects are decoded for every event, and the decoder takes a third of the time of
// sigs.k8s.io/json.
package object
