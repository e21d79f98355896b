// Package hierarchy connects the objects that a handler is about to create with
// the object that it handles: owner references, names, namespaces and labels.
//
// Everything here changes objects in memory and never talks to the cluster. An
// object is anything that has metadata: a typed object (*corev1.Pod, or the pod
// template inside a Deployment), an *unstructured.Unstructured, or a plain
// map[string]any. Every function takes one object or a list: a slice of any of
// these, a typed list (*corev1.PodList), an *unstructured.UnstructuredList, or a
// slice of slices. For an empty list, a function does nothing.
//
// The owner is the object that the context carries (the engine puts it there,
// see WithOwner), or the one that OwnedBy names.
//
// Invariants:
//
//   - All or nothing: a call that returns an error has changed none of the
//     objects. The error names the object.
//   - What is set already stays, unless Forced is given.
//   - Labels are written as a new map, never into the existing one: a map is often
//     shared, for example by a Deployment's labels and its selector.
//   - A field that needs no change is not touched at all.
//
// The objects are not copied: no other goroutine may use them during a call.
//
// Specification: Hierarchies.
package hierarchy
