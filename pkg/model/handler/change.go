package handler

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/internal/recomputed"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// ChangeFunc handles a creation, an update, a deletion, a resumption, or a change of a
// field. The context is canceled when the handler's timeout is over or the operator
// cannot wait any longer. It carries the logger, the client, and the object for
// kopf.Adopt and log.FromContext. A handler may be called again after a crash, so it
// must be idempotent.
type ChangeFunc func(ctx context.Context, c *Change) error

// Change contains the arguments of a ChangeFunc. Use it only while the handler runs, and
// only in the handler's goroutine; the Patch can be shared.
//
// Specification: Arguments, "Resource-changing kwargs", "Retrying and timing".
type Change struct {
	writable
	attemptInfo
	resultHolder
	reason     cause.Reason
	compute    func() Transition
	transition recomputed.Value[Transition]
	children   Subhandlers
	misfit     *MisfitError // set if the handler is called nevertheless
}

// Subhandlers registers the sub-handlers of one call of a handler. The engine implements
// it.
type Subhandlers interface {
	Register(d *Declaration, err error)
	Execute(ctx context.Context) error
}

var _ Arguments = (*Change)(nil)

// NewChange returns the arguments of one call.
func NewChange(s CallContext, param any, a Attempt, t Transition, children Subhandlers) *Change {
	return newChange(s, param, a, children, t.Reason, func() Transition { return t })
}

// NewChangeOf returns the arguments of one call of the handler. The function returns a cause
// with Old, New, and Diff. It is called when they are used, so that they need not be kept
// while the handler waits, and must always return the same. It must be safe for concurrent
// use.
func NewChangeOf(d *Declaration, s CallContext, a Attempt, children Subhandlers, reason cause.Reason, essences func() *Cause) *Change {
	return newChange(s, d.Param, a, children, reason, func() Transition { return d.Transition(essences()) })
}

func newChange(s CallContext, param any, a Attempt, children Subhandlers, reason cause.Reason, compute func() Transition) *Change {
	return &Change{writable: newWritable(s, param), attemptInfo: attemptInfo{a}, reason: reason, compute: compute, children: children}
}

// difference returns what has changed, as of the time of the call.
func (c *Change) difference() *Transition { return c.transition.Get(c.compute) }

// Reason returns what happened to the object. It is useful if one function is declared
// for several reasons.
func (c *Change) Reason() cause.Reason { return c.reason }

func (c *Change) callsUntyped() bool { return c.misfit != nil }

// Misfit returns why the object does not fit the Go type of the handler, or nil if it fits.
// It is not nil only for deletion handlers with the option OnMisfit(CallUntyped), which are
// called nevertheless, without the Go object.
func (c *Change) Misfit() error {
	if !c.callsUntyped() {
		return nil
	}
	return c.misfit
}

// Old returns the essence that was last handled, or the handler's field in it.
func (c *Change) Old() object.Value { return c.difference().Old }

// New returns the current essence, or the handler's field in it.
func (c *Change) New() object.Value { return c.difference().New }

// Diff returns the difference from Old to New, relative to the handler's field if it has
// one.
func (c *Change) Diff() diff.Diff { return c.difference().Diff }

// Subhandler registers a part of this handler's work as a separate handler with the id
// "<handler>/<id>" and its own progress, retries, and result. It runs after this handler
// has returned without an error, or in Execute. The handler is called again until all
// its sub-handlers are done, and must register the same ones each time.
//
// By default, a sub-handler sees the old and new values and the diff of this handler,
// relative to its field if it has one. A sub-handler with a Field sees those of that
// field, whose path begins at the object's root. Its field is a filter: it need not have
// changed.
//
// Specification: Handlers, "Sub-handlers"; Idempotence.
func (c *Change) Subhandler(id string, fn ChangeFunc, options ...SubhandlerOption) {
	c.children.Register(newSubhandler(id, fn, options))
}

// Execute runs the registered sub-handlers immediately instead of after the return. It
// returns nil when all of them are done. The handler must return any other error
// unchanged.
func (c *Change) Execute(ctx context.Context) error { return c.children.Execute(ctx) }

// OldEssence returns the essence of the entire object that was last handled, also for
// handlers of fields. It returns nil if there is none or if it is unknown. Do not modify
// it.
func (c *Change) OldEssence() object.Essence {
	if essence := c.difference().OldEssence; object.NewValue(essence).Known() {
		return essence
	}
	return nil
}

// ChildrenFunc returns the children that an object should have, typed or unstructured. It is
// called again whenever that may have changed, so it must be quick and must not change
// anything. If it returns an error, no child is changed.
type ChildrenFunc func(ctx context.Context, c *Change) ([]client.Object, error)

// Converger makes the children of an object what they should be. The engine implements it.
type Converger interface {
	// Converge applies the children that a call of a handler wants, and deletes the others that
	// the handler has applied earlier.
	Converge(ctx context.Context, d *Declaration, call *Change, wanted []client.Object) error
	// Release deletes the children of a handler that the garbage collector does not reach.
	Release(ctx context.Context, d *Declaration) error
}

var errNoConverger = errors.New("the children cannot be applied, because the handler was not called by an operator")

// converge makes the declaration one of a handler that returns children.
func converge(d *Declaration, fn ChildrenFunc) {
	if fn == nil {
		return
	}
	d.Ensures = &convergence.Options{}
	d.onChange = func(ctx context.Context, c *Change) error {
		wanted, err := fn(ctx, c)
		if err != nil {
			return err
		}
		if c.call.Converger == nil {
			return errNoConverger
		}
		return c.call.Converger.Converge(ctx, d, c, wanted)
	}
}

// releasing returns the declaration of the same handler for deletions. It holds only objects
// with children that the garbage collector does not reach, whatever the handler's filters say
// by now.
func releasing(d *Declaration) *Declaration {
	r := *d
	r.Kind = OnDelete
	r.OnMisfit = CallUntyped
	r.decoding = nil
	r.types = nil
	r.Labels = nil
	r.Annotations = nil
	r.Predicates = []Predicate{hasUnreachableChildren}
	r.onChange = func(ctx context.Context, c *Change) error {
		if c.call.Converger == nil {
			return errNoConverger
		}
		return c.call.Converger.Release(ctx, d)
	}
	return &r
}

// restoring returns the declaration of the same handler for what others do to the children. It
// has its own record, because it belongs to no cycle of the parent, and no result: the status has
// that of the last cycle. For the same reason, it calls no sub-handlers.
func restoring(d *Declaration) *Declaration {
	r := *d
	r.Kind = OnDisturbance
	r.ID = d.ID + "/restore"
	r.parent = d
	r.onChange = func(ctx context.Context, c *Change) error {
		c.children = noSubhandlers{}
		err := d.onChange(ctx, c)
		c.SetResult(nil)
		return err
	}
	return &r
}

// noSubhandlers ignores sub-handlers.
type noSubhandlers struct{}

func (noSubhandlers) Register(*Declaration, error)  {}
func (noSubhandlers) Execute(context.Context) error { return nil }

// hasUnreachableChildren reports whether the garbage collector does not delete all children
// with the object.
func hasUnreachableChildren(a Arguments) bool {
	places := convergence.ReadPlaces(a.Body())
	return !places.AreReachable(a.Namespace())
}
