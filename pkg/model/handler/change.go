package handler

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// ChangeFunc is a handler of a creation, an update, a deletion, a resuming, or
// of a field. The context is cancelled when the handler's timeout is over or the
// operator cannot wait any longer, and carries the logger, the client and the
// object, so that kopf.Adopt and log.FromContext find them. A handler may be
// called again after a crash: it must be idempotent.
type ChangeFunc func(ctx context.Context, c *Change) error

// Change is the arguments of a ChangeFunc. It is valid while the handler runs,
// and for the handler's goroutine only; the Patch can be shared.
//
// Specification: Arguments, "Resource-changing kwargs", "Retrying and timing".
type Change struct {
	writable
	attemptInfo
	resultHolder
	transition Transition
	children   Subhandlers
}

// Subhandlers takes the sub-handlers of one call of a handler; the engine implements
// it.
type Subhandlers interface {
	Register(d *Declaration, err error)
	Execute(ctx context.Context) error
}

var _ Arguments = (*Change)(nil)

// NewChange makes the arguments of one call.
func NewChange(s CallContext, param any, a Attempt, t Transition, children Subhandlers) *Change {
	return &Change{writable: newWritable(s, param), attemptInfo: attemptInfo{a}, transition: t, children: children}
}

// Reason is what happened to the object; useful when one function is declared
// for several reasons.
func (c *Change) Reason() cause.Reason { return c.transition.Reason }

// Old is the essence that was handled last, or the handler's field in it.
func (c *Change) Old() object.Value { return c.transition.Old }

// New is the essence now, or the handler's field in it.
func (c *Change) New() object.Value { return c.transition.New }

// Diff is the difference from Old to New; relative to the field, if there is one.
func (c *Change) Diff() diff.Diff { return c.transition.Diff }

// Subhandler registers a part of this handler's work as a handler of its own,
// with its own progress, retries and result, under the id "<handler>/<id>". It
// runs after this handler has returned without an error, or in Execute. The
// handler is called again until all its sub-handlers are done, and must register
// the same ones each time: what they are is not remembered.
//
// The old and new values and the diff are those of this handler: of its field, if it has
// one. A sub-handler with a Field sees those of that field, whose path begins at the
// object's root. Its field is a filter: it need not have changed.
//
// Specification: Handlers, "Sub-handlers"; Idempotence.
func (c *Change) Subhandler(id string, fn ChangeFunc, options ...SubhandlerOption) {
	c.children.Register(newSubhandler(id, fn, options))
}

// Execute runs the registered sub-handlers here and now instead of after the
// return. It returns nil when all of them are done; the handler must return any
// other error as it is.
func (c *Change) Execute(ctx context.Context) error { return c.children.Execute(ctx) }

// OldEssence is the essence of the whole object that was handled last, also for
// a handler of a field; nil if there is none, or if it is not known. Read only.
func (c *Change) OldEssence() object.Essence {
	if essence := c.transition.OldEssence; object.NewValue(essence).Known() {
		return essence
	}
	return nil
}
