package diff

import "github.com/kopf-go/kopf/pkg/model/object"

// Op is the kind of a difference.
type Op string

const (
	// Add means that the field was absent.
	Add Op = "add"
	// Change means that the field had another value.
	Change Op = "change"
	// Remove means that the field is now absent.
	Remove Op = "remove"
)

// Item is one difference.
type Item struct {
	Op   Op
	Path object.Path // of the field; empty if the compared values differ as a whole
	Old  any         // nil if added; an Opaque if unknown. Shared, read-only
	New  any         // nil if removed. Shared, read-only
}

// Diff is a list of differences, sorted by path. None of its paths lies inside another
// one. An empty Diff means that nothing differs.
type Diff []Item

// Scope limits which fields of mappings are compared. If the kind of a value differs,
// for example a mapping from a list, it counts as a difference in every scope.
type Scope int

const (
	// Full compares the fields of both sides.
	Full Scope = iota
	// Left compares only the fields of the old side, including nulls. It ignores
	// added fields.
	Left
	// Right compares only the fields of the new side, including nulls.
	Right
)

// Opaque represents an unknown old value that can only be compared with other values: a
// diff base can store hashes instead of values. The fields inside it are unknown, and
// any of them may have changed. It never equals an absent value.
type Opaque = object.Opaque
