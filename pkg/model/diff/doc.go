// Package diff computes what has changed between two states of an object.
//
// Handlers need to know which fields have changed: which label was added, and what the
// old and new values are. A Diff is the list of such items, one for every field that
// differs.
//
// The rules are those of the Kubernetes API:
//
//   - Mappings are compared key by key, at any depth; a field that appears or
//     disappears with all its content is one item.
//   - Lists are compared as a whole, because only the resource's schema knows what
//     identifies an item of a list.
//   - A null value in a mapping counts as absent.
//   - Numbers are compared by value, regardless of the types they are decoded to: 1
//     equals 1.0. A boolean does not equal a number, and a string equals only a string.
//
// Compute runs for every event of every object, and nearly always finds no changes: for
// equal states, it allocates nothing. In return, a Diff shares its values with the
// states, and must be treated as read-only.
//
// Specification: Arguments, "Diffing"; Tutorial, "Diffs"; Handlers, "Field handlers".
package diff
