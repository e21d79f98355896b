package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Op is what has happened to a field.
type Op string

const (
	// Add is a field that was absent.
	Add Op = "add"
	// Change is a field with another value than before.
	Change Op = "change"
	// Remove is a field that is absent now.
	Remove Op = "remove"
)

// Item is one difference.
type Item struct {
	Op   Op
	Path object.Path // of the field; empty: the whole value that was compared
	Old  any         // nil if added; an Opaque if it is not known. Shared: read only
	New  any         // nil if removed. Shared: read only
}

// Diff is a list of differences, sorted by path. No path in it lies inside
// another one. An empty Diff says that nothing differs.
type Diff []Item

// Scope limits which fields of mappings are compared. A mapping, a list or a
// scalar that takes the place of another kind of value is a difference in every
// scope.
type Scope int

const (
	// Full compares the fields of both sides.
	Full Scope = iota
	// Left compares only the fields that the old side has, be they null: what
	// was added by others does not count.
	Left
	// Right compares only the fields that the new side has, be they null.
	Right
)

// Opaque stands for an old value that is not known, only whether another one
// equals it: a baseline can hold hashes instead of values. Of what lies inside of
// it nothing is known, and any of it may have changed. It never equals absence.
type Opaque = object.Opaque
