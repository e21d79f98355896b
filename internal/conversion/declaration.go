package conversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Call is one call of a function of a user.
type Call struct {
	Object   *unstructured.Unstructured // of the version From; the function changes it
	From, To string                     // "v1alpha1"
	Logger   logr.Logger
}

// Function converts the object of a call in place. It is the code of a user, or calls it.
type Function func(ctx context.Context, c *Call) error

// Declaration is a function that converts objects of a resource from one version to another. Do not
// modify it.
type Declaration struct {
	Selector   selector.Selector
	From, To   string // the names of versions: "v1alpha1"
	DeclaredAt string

	convert Function
	expand  func(*runtime.Scheme) ([]Pair, error) // of Go types, in place of the selector and the versions
}

// Pair is a conversion from one Go type to another.
type Pair struct {
	From, To runtime.Object
	Convert  Function
}

// New declares a conversion from one version to another.
func New(sel selector.Selector, from, to string, convert Function) (*Declaration, error) {
	return NewAt(function.Caller(), sel, from, to, convert)
}

// NewAt is New for a conversion that is declared at a place outside the source: in a file that the program reads.
func NewAt(place string, sel selector.Selector, from, to string, convert Function) (*Declaration, error) {
	d := &Declaration{Selector: sel, From: from, To: to, DeclaredAt: place, convert: convert}
	var problems []error
	if err := sel.Err(); err != nil {
		problems = append(problems, err)
	} else if sel == (selector.Selector{}) {
		problems = append(problems, errors.New("it has no resource: specify one with kopf.Resource(...)"))
	}
	for _, version := range []string{from, to} {
		if len(utilvalidation.IsDNS1035Label(version)) > 0 {
			problems = append(problems, fmt.Errorf("%q is not the name of a version: name it without its group, such as %q", version, "v1alpha1"))
		}
	}
	if from == to {
		problems = append(problems, fmt.Errorf("it converts %s to itself: name two versions", from))
	}
	if convert == nil {
		problems = append(problems, errors.New("the function is nil"))
	}
	if len(problems) > 0 {
		return nil, d.mistake(errors.Join(problems...))
	}
	return d, nil
}

// Typed declares conversions between Go types. The function returns them when the scheme is known.
func Typed(expand func(*runtime.Scheme) ([]Pair, error)) *Declaration {
	return &Declaration{DeclaredAt: function.Caller(), expand: expand}
}

// String returns the conversion as messages name it.
func (d *Declaration) String() string {
	if d.From == "" {
		return "the conversion of Go types"
	}
	return fmt.Sprintf("the conversion of %s from %s to %s", d.Selector, d.From, d.To)
}

func (d *Declaration) mistake(err error) error {
	return fmt.Errorf("%s: %s: %w", d.DeclaredAt, d, err)
}

// Bind returns the declarations with the selectors and the versions of their Go types, and all mistakes in them.
func Bind(declared []*Declaration, scheme *runtime.Scheme) (Set, error) {
	var set Set
	var problems []error
	for _, d := range declared {
		if d.expand == nil {
			set = append(set, d)
			continue
		}
		bound, err := d.bind(scheme)
		if err != nil {
			problems = append(problems, d.mistake(err))
		}
		set = append(set, bound...)
	}
	if len(problems) == 0 {
		problems = append(problems, set.check())
	}
	return set, errors.Join(problems...)
}

// bind returns a declaration for each pair of Go types.
func (d *Declaration) bind(scheme *runtime.Scheme) (Set, error) {
	pairs, err := d.expand(scheme)
	if err != nil {
		return nil, err
	}
	var set Set
	for _, pair := range pairs {
		from, err := kindOf(pair.From, scheme)
		if err != nil {
			return nil, err
		}
		to, err := kindOf(pair.To, scheme)
		if err != nil {
			return nil, err
		}
		switch {
		case from.GroupKind() != to.GroupKind():
			return nil, fmt.Errorf("%T is the type of %s, and %T that of %s: a conversion is between versions of one kind", pair.From, from.GroupKind(), pair.To, to.GroupKind())
		case from.Version == to.Version:
			return nil, fmt.Errorf("%T and %T are both types of the version %s: name the types of two versions", pair.From, pair.To, from.Version)
		}
		set = append(set, &Declaration{
			Selector: selector.By(selector.Fields{Group: from.Group, Kind: from.Kind}),
			From:     from.Version, To: to.Version, DeclaredAt: d.DeclaredAt, convert: pair.Convert,
		})
	}
	return set, nil
}

func kindOf(typed runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(typed, scheme)
	if err != nil {
		return kind, fmt.Errorf("the type %T is not in the scheme: add it with AddToScheme of its package to Options.Scheme, which is scheme.Scheme of client-go by default: %w", typed, err)
	}
	return kind, nil
}

// Set is a list of bound declarations in the order of the source.
type Set []*Declaration

// check returns the mistakes that are certain before the definitions are known.
func (s Set) check() error {
	var problems []error
	var checked []selector.Selector
	for _, d := range s {
		if slices.Contains(checked, d.Selector) {
			continue
		}
		checked = append(checked, d.Selector)
		graph := &Graph{Name: d.Selector.String()}
		for _, other := range s {
			if other.Selector == d.Selector {
				problems = append(problems, graph.add(other))
			}
		}
		problems = append(problems, graph.check())
	}
	return errors.Join(problems...)
}

// Resolve returns the graphs of the resources of a cluster by the names of their definitions, and the
// problems: what cannot be converted until the declarations or the cluster change.
func (s Set) Resolve(resources []selector.Resource) (map[string]*Graph, []error) {
	graphs := map[string]*Graph{}
	var problems []error
	for _, d := range s {
		found, err := d.Selector.Resolve(resources)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", d.DeclaredAt, d, err))
		}
		added := map[string]bool{} // a resource can be found in several versions
		for _, resource := range found {
			name := resource.Plural + "." + resource.Group
			if resource.Group == "" || added[name] {
				continue // built-in resources are converted by the API server
			}
			added[name] = true
			if graphs[name] == nil {
				graphs[name] = &Graph{Name: name, Group: resource.Group, Kind: resource.Kind}
			}
			if err := graphs[name].add(d); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return graphs, problems
}
