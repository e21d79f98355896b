package selector

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/internal/function"
)

const (
	// Everything, in the place of a name, selects all resources of a group, of
	// a group's version, or of the whole cluster; except Kubernetes events.
	Everything = "*"
	// Core names the group of pods and services, whose real name is empty. New
	// takes it and the empty string, By takes only it: there, empty is any group.
	Core = "core"
)

// Selector tells which resources are meant. Compare selectors with ==. The zero
// Selector selects nothing.
type Selector struct {
	text    string // as the developer wrote it
	grouped bool   // false: any group
	group   string
	version string // empty: the preferred one of each resource
	by      criterion
	name    string               // what the criterion compares with
	test    *func(Resource) bool // a pointer, to be comparable
	problem string
}

// New makes a selector from the notations of kubectl; the name comes last:
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
// The name is the plural, the singular, the kind, or a short name. A selector
// without a group is fine for experiments: another group with such a resource
// makes it ambiguous. Only the core group wins over all others.
func New(parts ...string) Selector {
	text := strings.Join(parts, "/")
	n, err := parse(parts)
	if err == nil {
		err = n.validate()
	}
	if err != nil {
		return broken(text, err)
	}
	s := Selector{text: text, grouped: n.grouped, group: n.group, version: n.version, by: anyName, name: n.name}
	if n.name == Everything {
		s.by = everything
	}
	return s
}

// Fields are parts of a selector by their meaning. Exactly one of the names must
// be given; the group and the version can narrow it down.
type Fields struct {
	Group   string // empty: any; Core: the core group
	Version string // empty: the preferred one

	Kind      string
	Plural    string
	Singular  string
	ShortName string
	// Category selects all resources of the category, such as "all", which is
	// by far not everything; except Kubernetes events.
	Category string
}

// By returns a selector from one particular name of a resource.
func By(f Fields) Selector {
	by, name, err := f.criterion()
	n := notation{grouped: f.Group != "", group: f.Group, version: f.Version, name: name}
	n = n.normalized()
	if err == nil {
		err = n.validate()
	}
	if err == nil && name == Everything {
		err = fmt.Errorf("%q stands for no name here: write it as the last part of kopf.Resource", Everything)
	}
	if err != nil {
		return broken(f.text(), err)
	}
	return Selector{text: f.text(), grouped: n.grouped, group: n.group, version: n.version, by: by, name: name}
}

// Exact makes a selector of a kind in one version, such as a Go type has it.
func Exact(gvk schema.GroupVersionKind) Selector {
	text := dotted(gvk.Kind, gvk.GroupVersion())
	if gvk.Kind == "" || gvk.Version == "" {
		return broken(text, errors.New("the kind and the version must be known: register the type in the scheme"))
	}
	return Selector{text: text, grouped: true, group: gvk.Group, version: gvk.Version, by: kind, name: gvk.Kind}
}

// Func returns a selector of all resources that the callback accepts; except
// Kubernetes events. The callback is asked about every version of a resource,
// preferred or not, and more than once. It is not a filter of objects: it
// decides whether a resource is watched at all.
func Func(test func(Resource) bool) Selector {
	if test == nil {
		return broken("matching", errors.New("there is no function that would match"))
	}
	return Selector{text: "matching " + function.Symbol(test), by: callback, test: &test}
}

func broken(text string, err error) Selector { return Selector{text: text, problem: err.Error()} }

// Err is what is wrong with the selector, whatever the cluster has; nil if nothing is.
func (s Selector) Err() error {
	if s.problem == "" {
		return nil
	}
	return fmt.Errorf("the resource selector %q: %s", s.text, s.problem)
}

// String shows the selector as it was written, for people.
func (s Selector) String() string { return s.text }
