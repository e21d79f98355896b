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

// OwnershipOption is an option of AppendOwnerReference, BuildOwnerReference, and AppendOwner.
type OwnershipOption interface {
	ReferenceOption
	forOwnership()
}

// ForcedOption is an option of all functions that can overwrite.
type ForcedOption interface {
	LabelOption
	NamingOption
	NamespaceOption
}

// OwnerOption is an option of all functions that need the owner.
type OwnerOption interface {
	LabelOption
	NamingOption
	NamespaceOption
	ReferenceOption
	RemovalOption
}

// Forced overwrites what the object has already: labels with the same keys, the
// name, the namespace. Without it they stay.
func Forced() ForcedOption { return option(func(c *config) { c.forced = true }) }

// Strict sets the exact name instead of a prefix, to which the API server appends
// a random suffix. Use it if there is one child of its kind.
func Strict() NamingOption { return option(func(c *config) { c.strict = true }) }

// Nested also labels objects inside the object. It takes the paths of fields, as object.ParsePath does:
// "spec.template" of a Deployment or a Job, "spec.jobTemplate.spec.template" of
// a CronJob. A field that the object does not have is ignored; a template that
// is a field of a Go struct is always there.
func Nested(fields ...string) LabelOption {
	return option(func(c *config) {
		for _, field := range fields {
			path, err := object.ParsePath(field)
			c.errs = append(c.errs, err)
			c.nested = append(c.nested, path)
		}
	})
}

// Labels sets the labels to add. Default: those of the owner. An empty or nil map
// adds nothing.
func Labels(labels map[string]string) LabelOption {
	return option(func(c *config) { c.labels = &labels })
}

// Name sets the name, or its prefix. Default: that of the owner.
func Name(name string) NamingOption {
	return option(func(c *config) {
		if name == "" {
			c.errs = append(c.errs, errors.New("the name is empty: omit the option to use the name of the owner"))
		}
		c.name = &name
	})
}

// Namespace sets the namespace. Default: that of the owner. It is empty for a
// cluster-scoped object.
func Namespace(namespace string) NamespaceOption {
	return option(func(c *config) { c.namespace = &namespace })
}

// OwnedBy sets the owner: anything that OwnerOf takes. Default: the object that the
// context carries. A typed object without a kind has that of its Go type in the
// context's scheme, see WithScheme.
func OwnedBy(owner any) OwnerOption { return option(func(c *config) { c.owner = &owner }) }

// NotController adds an owner that does not control the child. An object has at
// most one controller, and any number of other owners.
func NotController() OwnershipOption { return option(func(c *config) { c.notController = true }) }

// NotBlocking adds an owner that can be removed before the child when the owner is
// deleted in the foreground.
func NotBlocking() OwnershipOption { return option(func(c *config) { c.notBlocking = true }) }

// config holds the options of one call, and the edits that they lead to. What is nil
// was not given.
type config struct {
	owner         *any
	labels        *map[string]string
	name          *string
	namespace     *string
	nested        []object.Path
	forced        bool
	strict        bool
	notController bool
	notBlocking   bool
	errs          []error

	edits       []edit // of the objects themselves
	nestedEdits []edit // of the objects nested in them
}

func collect[O AdoptOption](opts []O) (*config, error) {
	c := &config{}
	for _, opt := range opts {
		if any(opt) != nil {
			opt.apply(c)
		}
	}
	return c, errors.Join(c.errs...)
}

// option implements all interfaces; the result types of the functions above decide
// where it can be used.
type option func(*config)

func (o option) apply(c *config) { o(c) }
func (option) forLabels()        {}
func (option) forNaming()        {}
func (option) forNamespace()     {}
func (option) forReference()     {}
func (option) forRemoval()       {}
func (option) forOwnership()     {}
