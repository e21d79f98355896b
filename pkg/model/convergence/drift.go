package convergence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// DriftedField is a field of a child that is not what the handler of the children wants, because
// another field manager has changed or removed it.
type DriftedField struct {
	// Path is the field as people write it: "spec.template.spec.containers[name=web].image". Items of a
	// list are named by its keys: "spec.ports[port=53,protocol=UDP]".
	// A key with a dot or a slash is in brackets: "metadata.labels[example.com/team]". A list
	// that the API server replaces as a whole is one field.
	Path string
	// Manager is the field manager that owns the field now. It is empty if that is unknown:
	// a removed field has no owner.
	Manager string
	// Since is when that manager has changed the child last, to the second. It is zero if
	// that is unknown.
	Since time.Time
	// Wanted is the value that the handler of the children wants, and Found the value that the child has, or an
	// absent value.
	Wanted, Found object.Value
}

// IsRemoved reports whether the field was removed. It is not known by which manager and when.
func (f DriftedField) IsRemoved() bool { return f.Manager == "" }

// String returns the path and the manager, without the values: "data.color (by kubectl)".
func (f DriftedField) String() string {
	if f.IsRemoved() {
		return f.Path + " (removed)"
	}
	return fmt.Sprintf("%s (by %s)", f.Path, f.Manager)
}

// Drift is how a child differs from what its handler wants.
type Drift struct {
	// Child is the child, and Live its latest version, or nil if it was deleted.
	Child ChildKey
	Live  *object.Body
	// Fields are the fields that differ. A deleted child has none.
	Fields []DriftedField
}

// Resolution says which changes of a drift stay. The zero value restores everything.
type Resolution struct {
	all   bool
	paths []string
}

// Restore applies again what the handler of the children wants.
func Restore() Resolution { return Resolution{} }

// Accept leaves all fields of the drift to their managers.
func Accept() Resolution { return Resolution{all: true} }

// AcceptFields leaves some fields to their managers if they have drifted, and restores the others.
func AcceptFields(paths ...string) Resolution { return Resolution{paths: slices.Clone(paths)} }

// And returns a resolution that accepts what one of both accepts.
func (r Resolution) And(other Resolution) Resolution {
	return Resolution{all: r.all || other.all, paths: slices.Concat(r.paths, other.paths)}
}

// Accepts reports whether a field is left to its manager.
func (r Resolution) Accepts(path string) bool { return r.all || slices.Contains(r.paths, path) }

// String returns what happens to the drift: "restore", "accept", or "accept spec.replicas".
func (r Resolution) String() string {
	switch {
	case r.all:
		return "accept"
	case len(r.paths) > 0:
		return "accept " + strings.Join(r.paths, ", ")
	default:
		return "restore"
	}
}

// Check returns an error if the resolution accepts what cannot be accepted.
func (r Resolution) Check(of Drift) error {
	if of.Live == nil && r.all {
		return fmt.Errorf("the deletion of the child %s cannot be accepted: to live without the child, do not return it", of.Child)
	}
	return nil
}

// Fields returns the fields as a text.
func Fields(fields []DriftedField) string {
	text := ""
	for i, f := range fields {
		if i > 0 {
			text += ", "
		}
		text += f.String()
	}
	return text
}
