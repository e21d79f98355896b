package handler

import (
	"context"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// DriftFunc decides what becomes of the changes that other field managers have made to a child.
// It is a part of the attempt of the handler that returns the children: an error fails that
// attempt, and the child is not changed until a later one succeeds.
type DriftFunc func(ctx context.Context, c *Drift) (convergence.Resolution, error)

// Drift contains the arguments of a DriftFunc. Body and all that comes from it are the
// parent's, and so is the Patch, which is that of the handler that returns the children, and is
// written with it. Use it only while the handler runs, and only in the handler's goroutine; the
// Patch can be shared.
type Drift struct {
	writable
	attemptInfo
	handler string
	of      convergence.Drift
}

var _ Arguments = (*Drift)(nil)

// NewDrift returns the arguments of one call. Those of the parent are those of the handler that
// returns the children, except the CallContext.
func NewDrift(d *Declaration, s CallContext, children *Change, ensuredBy string, of convergence.Drift) *Drift {
	s.Patch = children.call.Patch
	return &Drift{writable: newWritable(s, d.Param), attemptInfo: children.attemptInfo, handler: ensuredBy, of: of}
}

// EnsuredBy returns the id of the handler that returns the child.
func (c *Drift) EnsuredBy() string { return c.handler }

// Key returns the kind, the namespace, and the name of the child.
func (c *Drift) Key() convergence.ChildKey { return c.of.Child }

// Child returns the child as it is now. It is nil if the child was deleted.
func (c *Drift) Child() *object.Body { return c.of.Live }

// Deleted reports whether the child was deleted. It is not known by which client, and Fields is
// empty.
func (c *Drift) Deleted() bool { return c.of.Live == nil }

// Fields returns the fields that differ from what is wanted, in the order of their paths. Fields
// that the handler of the children leaves out, and the marks of the operator (its label and
// annotation, and the owner references) are not among them.
func (c *Drift) Fields() []convergence.DriftedField { return c.of.Fields }

// Field returns the field with the path, or false if it has not drifted.
func (c *Drift) Field(path string) (convergence.DriftedField, bool) {
	for _, field := range c.of.Fields {
		if field.Path == path {
			return field, true
		}
	}
	return convergence.DriftedField{}, false
}

// ForDrift declares a handler of what others change in the children of objects.
func ForDrift(sel selector.Selector, fn Function, options ...DriftOption) (*Declaration, error) {
	return declare(OnDrift, sel, fn, options, DriftOption.drift)
}

// EnsuredBy restricts a handler of drift to the children of some handlers.
func EnsuredBy(ids ...string) DriftingOption {
	return func(d *Declaration) { d.EnsuredBy = append(d.EnsuredBy, ids...) }
}

// AboutChild returns the handler for a call about one child, which is a part of its id: the
// resource, and the name with the namespace unless it is the parent's.
func AboutChild(d *Declaration, r selector.Resource, child convergence.ChildKey, parentNamespace string) *Declaration {
	call := *d
	parts := []string{d.ID, r.Plural, child.Name}
	if child.Namespace != parentNamespace {
		parts = []string{d.ID, r.Plural, child.Namespace, child.Name}
	}
	call.ID = strings.Join(parts, "/")
	call.parent = d
	return &call
}

// CallDrift calls a handler of drift. A panic becomes a PanicError.
func CallDrift(ctx context.Context, d *Declaration, c *Drift) (r convergence.Resolution, err error) {
	defer observe(ctx, d, c)(&err)
	defer recoverPanic(&err)
	r, err = d.onDrift(ctx, c)
	if err != nil {
		read(err)
		return r, err
	}
	if wrong := r.Check(c.of); wrong != nil {
		return r, Permanent(wrong)
	}
	return r, nil
}
