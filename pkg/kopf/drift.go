package kopf

import (
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Drift has the arguments of a handler of drift: what other field managers have changed in a child
// of Ensure. Body and all that comes from it are the parent's, and so is the Patch, which is that of
// the handler that returns the children, and is written with it. Use it only while the handler runs,
// and only in the handler's goroutine; the Patch can be shared.
//
// The handler is called again whenever an attempt of the handler of Ensure is repeated, so it must be
// idempotent.
type Drift struct {
	reading
	writing
	retrying
}

func driftOf(c *handler.Call) *Drift { return &Drift{reading{c}, writing{c}, retrying{c}} }

// EnsuredBy returns the id of the handler that returns the child.
func (c *Drift) EnsuredBy() string { return c.reading.call.Drift.EnsuredBy }

// Key returns the kind, the namespace, and the name of the child.
func (c *Drift) Key() convergence.ChildKey { return c.reading.call.Drift.Child }

// Child returns the child as it is now. It is nil if the child was deleted.
func (c *Drift) Child() *object.Body { return c.reading.call.Drift.Live }

// Deleted reports whether the child was deleted. It is not known by which client, and Fields is
// empty.
func (c *Drift) Deleted() bool { return c.reading.call.Drift.Live == nil }

// Fields returns the fields that differ from what is wanted, in the order of their paths. Fields
// that the handler of the children leaves out, and the marks of the operator (its label and
// annotation, and the owner references) are not among them.
func (c *Drift) Fields() []convergence.DriftedField { return c.reading.call.Drift.Fields }

// Field returns the field with the path, or false if it has not drifted.
func (c *Drift) Field(path string) (convergence.DriftedField, bool) {
	for _, field := range c.reading.call.Drift.Fields {
		if field.Path == path {
			return field, true
		}
	}
	return convergence.DriftedField{}, false
}

// Resolution says which changes of a drift stay. It has no fields: RestoreDrift, AcceptDrift, and AcceptFields
// return it, and the zero value restores everything. Its method And combines two of them.
type Resolution = convergence.Resolution

// EnsuredBy restricts a function of OnDrift to the children of the handlers of Ensure with these
// ids. An id that no handler of Ensure has is an error at the start.
func EnsuredBy(ids ...string) ChildOption { return handler.EnsuredBy(ids...) }

// RestoreDrift makes the operator apply again what the handler of Ensure wants.
func RestoreDrift() Resolution { return convergence.Restore() }

// AcceptDrift leaves all fields of the drift to their field managers, until the handler of Ensure wants
// other values of them. For a deleted child, it is a permanent error.
func AcceptDrift() Resolution { return convergence.Accept() }

// AcceptFields leaves the fields with these paths to their field managers, and restores the others:
// "spec.replicas", as in the Path of a drifted field. Paths that have not drifted have no effect, and a
// child that was deleted is created again.
func AcceptFields(paths ...string) Resolution { return convergence.AcceptFields(paths...) }
