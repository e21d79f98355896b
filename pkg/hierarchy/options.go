package hierarchy

import (
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// AdoptOption is an option of Adopt, which takes those of all its parts.
type AdoptOption interface{ apply(*config) }

// LabelOption is an option of Label.
type LabelOption interface {
	AdoptOption
	forLabels()
}

// NamingOption is an option of HarmonizeNaming.
type NamingOption interface {
	AdoptOption
	forNaming()
}

// NamespaceOption is an option of AdjustNamespace.
type NamespaceOption interface {
	AdoptOption
	forNamespace()
}

// ReferenceOption is an option of AppendOwnerReference.
type ReferenceOption interface {
	AdoptOption
	forReference()
}

// RemovalOption is an option of RemoveOwnerReference.
type RemovalOption interface {
	AdoptOption
	forRemoval()
}

// OwnershipOption is an option of AppendOwnerReference and OwnerReference.
type OwnershipOption interface {
	ReferenceOption
	forOwnership()
}

// ForcedOption is an option of everything that can overwrite.
type ForcedOption interface {
	LabelOption
	NamingOption
	NamespaceOption
}

// OwnerOption is an option of everything that looks for the owner.
type OwnerOption interface {
	LabelOption
	NamingOption
	NamespaceOption
	ReferenceOption
	RemovalOption
}

// Forced overwrites what the object has already: its labels of the same keys,
// its name, its namespace. Without it they stay.
func Forced() ForcedOption { return option(func(c *config) { c.forced = true }) }

// Strict gives the exact name instead of a prefix to which the API server
// appends a random suffix. It is for the only child of its kind.
func Strict() NamingOption { return option(func(c *config) { c.strict = true }) }

// Nested also labels the objects inside of the object, in dotted notation:
// "spec.template" of a Deployment or a Job, "spec.jobTemplate.spec.template" of
// a CronJob. A field that the object does not have is ignored; a template that
// is part of a Go struct is always there.
func Nested(fields ...string) LabelOption {
	return option(func(c *config) {
		for _, field := range fields {
			path, err := object.ParsePath(field)
			c.errs = append(c.errs, err)
			c.nested = append(c.nested, path)
		}
	})
}

// NestedPath is Nested for fields whose names have dots.
func NestedPath(paths ...object.Path) LabelOption {
	return option(func(c *config) { c.nested = append(c.nested, paths...) })
}

// Labels gives the labels; without it they are the owner's. No labels at all,
// or nil, add nothing.
func Labels(labels map[string]string) LabelOption {
	return option(func(c *config) { c.labels.set(labels) })
}

// Name gives the name, or its prefix; without it, it is the owner's.
func Name(name string) NamingOption {
	return option(func(c *config) {
		if name == "" {
			c.errs = append(c.errs, errors.New("the name is empty: omit the option to take the owner's"))
		}
		c.name.set(name)
	})
}

// Namespace gives the namespace; without it, it is the owner's. An empty one is
// that of a cluster-scoped object.
func Namespace(namespace string) NamespaceOption {
	return option(func(c *config) { c.namespace.set(namespace) })
}

// OwnedBy names the owner, anything that OwnerOf takes; without it, it is the
// object that the context carries.
func OwnedBy(owner any) OwnerOption { return option(func(c *config) { c.owner.set(owner) }) }

// NotController makes an owner that does not control the child. An object has
// at most one controller, and any number of other owners.
func NotController() OwnershipOption { return option(func(c *config) { c.notController = true }) }

// NotBlocking makes an owner that can be removed before the child when it is
// deleted in the foreground.
func NotBlocking() OwnershipOption { return option(func(c *config) { c.notBlocking = true }) }

// config is what the options of one call say.
type config struct {
	owner         maybe[any]
	labels        maybe[map[string]string]
	name          maybe[string]
	namespace     maybe[string]
	nested        []object.Path
	forced        bool
	strict        bool
	notController bool
	notBlocking   bool
	errs          []error

	edits       []edit // of the objects themselves
	nestedEdits []edit // of the objects nested in them
}

// maybe tells a value that was given from one that was left out.
type maybe[T any] struct {
	value T
	given bool
}

func (m *maybe[T]) set(value T) { m.value, m.given = value, true }

func collect[O AdoptOption](opts []O) (*config, error) {
	c := &config{}
	for _, opt := range opts {
		if any(opt) != nil {
			opt.apply(c)
		}
	}
	return c, errors.Join(c.errs...)
}

// option implements all interfaces; the results of the functions above decide
// where it can be used.
type option func(*config)

func (o option) apply(c *config) { o(c) }
func (option) forLabels()        {}
func (option) forNaming()        {}
func (option) forNamespace()     {}
func (option) forReference()     {}
func (option) forRemoval()       {}
func (option) forOwnership()     {}
