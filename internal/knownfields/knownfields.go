// Package knownfields finds mistyped paths of fields. What is known of the fields of an object comes from the
// schema of a custom resource definition (schema.go), or from a Go type (gotype.go). It is certain only if a field
// does not exist: where a schema or a type is open to unknown fields, every path is accepted.
package knownfields

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/similar"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Fields are the known fields of a value.
type Fields interface {
	// field returns the fields below a field. They are nil if the field does not exist, or if nothing is
	// known of it: then it is open.
	field(name string) (below Fields, open bool)
	// names returns the names of the known fields.
	names() []string
}

// Missing is a path that no object has.
type Missing struct {
	Path object.Path
	// Nearest is the path that was probably meant, or nil.
	Nearest object.Path
}

// metadata returns the fields of the metadata of any object.
func metadata() Fields { return goType{reflect.TypeFor[metav1.ObjectMeta]()} }

// Check returns a path that does not exist in the fields of an object, or nil.
func Check(of Fields, path object.Path) *Missing {
	at := of
	for i, name := range path {
		below, open := at.field(name)
		if open {
			return nil
		}
		if below == nil {
			return &Missing{Path: path, Nearest: nearest(of, at, path, i)}
		}
		at = below
	}
	return nil
}

// nearest returns what was probably meant by a path whose part i does not exist in the fields at this place:
// the name of another field, or the same path below the spec or the status. Of a path into a list or into a
// single value, which have no fields, that is the path of the value.
func nearest(of, at Fields, path object.Path, i int) object.Path {
	names := at.names()
	if len(names) == 0 && i > 0 {
		return path[:i]
	}
	var similarOnes []object.Path
	for _, name := range similar.Words(path[i], slices.Sorted(slices.Values(names))) {
		candidate := slices.Clone(path)
		candidate[i] = name
		similarOnes = append(similarOnes, candidate)
	}
	candidates := similarOnes
	if i == 0 {
		candidates = append(candidates, append(object.Path{"spec"}, path...), append(object.Path{"status"}, path...))
	}
	for _, candidate := range candidates {
		if isKnown(of, candidate) {
			return candidate
		}
	}
	if len(similarOnes) > 0 {
		return similarOnes[0][:i+1]
	}
	return nil
}

// isKnown reports whether a path exists for certain.
func isKnown(at Fields, path object.Path) bool {
	for _, name := range path {
		below, _ := at.field(name)
		if below == nil {
			return false
		}
		at = below
	}
	return true
}
