package selector

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/function"
)

const (
	// Everything, in place of a name, selects all resources of a group, of a group's
	// version, or of the entire cluster, except Kubernetes events.
	Everything = "*"
	// Core is the name of the group of pods and services, whose real name is empty.
	// New accepts both; in By, an empty group means any group.
	Core = "core"
)

// Selector selects resources. Compare selectors with ==. The zero Selector selects
// nothing.
type Selector struct {
	text    string // as declared
	grouped bool   // false for any group
	group   string
	version string // empty for the preferred version of each resource
	by      criterion
	name    string               // compared with the criterion
	test    *func(Resource) bool // a pointer, to be comparable
	problem string
}

// New returns a selector for one of the notations of kubectl. The name comes last:
//
//	New("kopfexamples")                    // any group
//	New("kopf.dev", "kopfexamples")        // the preferred version
//	New("kopf.dev/v1", "kopfexamples")
//	New("kopf.dev", "v1", "kopfexamples")
//	New("kopfexamples.kopf.dev")
//	New("kopfexamples.v1.kopf.dev")
//	New("v1", "pods")                      // the core group; also New("", "v1", "pods")
//	New("kopf.dev", Everything)            // all resources of the group
//
// The name is the plural, the singular, the kind, or a short name. A selector without a
// group is suitable for experiments: it becomes ambiguous if another group has such a
// resource. Only the core group takes precedence over all others.
func New(parts ...string) Selector {
	text := strings.Join(parts, "/")
	n, err := parse(parts)
	if err == nil {
		err = n.validate()
	}
	if err != nil {
		return invalidSelector(text, err)
	}
	s := Selector{text: text, grouped: n.grouped, group: n.group, version: n.version, by: anyName, name: n.name}
	if n.name == Everything {
		s.by = everything
	}
	return s
}

// Fields contains the parts of a selector by their meaning. Set exactly one of the names;
// the group and the version narrow down the selection.
type Fields struct {
	Group   string // empty for any group; Core for the core group
	Version string // empty for the preferred version

	Kind      string
	Plural    string
	Singular  string
	ShortName string
	// Category selects all resources of the category, except Kubernetes events. The
	// category "all" contains only some of the resources.
	Category string
}

// By returns a selector for one particular name of a resource.
func By(f Fields) Selector {
	by, name, err := f.criterion()
	n := notation{grouped: f.Group != "", group: f.Group, version: f.Version, name: name}
	n = n.normalized()
	if err == nil {
		err = n.validate()
	}
	if err == nil && name == Everything {
		err = fmt.Errorf("%q is not allowed here: use it as the last part of kopf.Resource", Everything)
	}
	if err != nil {
		return invalidSelector(f.text(), err)
	}
	return Selector{text: f.text(), grouped: n.grouped, group: n.group, version: n.version, by: by, name: name}
}

// Exact returns a selector for a kind in one version, such as the kind of a Go type.
func Exact(gvk schema.GroupVersionKind) Selector {
	text := dottedName(gvk.Kind, gvk.GroupVersion())
	if gvk.Kind == "" || gvk.Version == "" {
		return invalidSelector(text, errors.New("the kind and the version must be known: register the type in the scheme"))
	}
	return Selector{text: text, grouped: true, group: gvk.Group, version: gvk.Version, by: kind, name: gvk.Kind}
}

// Func returns a selector of all resources that the callback accepts, except Kubernetes
// events. The callback is called for every version of a resource, preferred or not, and
// more than once. It does not filter objects, but decides whether a resource is watched at
// all.
func Func(test func(Resource) bool) Selector {
	if test == nil {
		return invalidSelector("matching", errors.New("the function is nil"))
	}
	return Selector{text: "matching " + function.Symbol(test), by: callback, test: &test}
}

func invalidSelector(text string, err error) Selector {
	return Selector{text: text, problem: err.Error()}
}

// Err returns the mistake in the selector, independent of the cluster, or nil.
func (s Selector) Err() error {
	if s.problem == "" {
		return nil
	}
	return fmt.Errorf("the resource selector %q: %s", s.text, s.problem)
}

// String returns the selector as it was declared.
func (s Selector) String() string { return s.text }
