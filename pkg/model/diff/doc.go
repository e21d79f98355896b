// Package diff tells what has changed between two states of an object.
//
// A handler seldom needs to know that an object has changed; it needs to know
// what: which label was added, which field went from which value to which. A
// Diff is the list of such items, one for every field that differs.
//
// The rules are those of the Kubernetes API:
//
//   - Mappings are compared key by key, at any depth; a field that appears or
//     disappears with all its content is one item.
//   - Lists are values as a whole: what identifies an item of a list is known to
//     the resource's schema only.
//   - A null is the absence of a value, wherever it is a value of a mapping.
//   - Numbers are compared by value, whatever types they are decoded to: 1 equals
//     1.0. A boolean is no number, and a string is only ever equal to a string.
//
// Compute runs for every event of every object, and nearly always finds
// nothing: for equal states it allocates nothing. In return, a Diff shares its
// values with the states it was made of: they are for reading only.
//
// Specification: Arguments, "Diffing"; Tutorial, "Diffs"; Handlers, "Field handlers".
package diff
