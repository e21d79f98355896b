package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// children are the sub-handlers that one call of a handler has registered.
type subhandlers struct {
	runner    *Runner
	parent    *handler.Declaration
	ancestors []*subhandlers // those in whose calls this one happens

	handlers registry.Handlers
	problems []error
	// interrupted is why the run as a whole had to end inside of the call.
	interrupted error
}

var _ handler.Subhandlers = (*subhandlers)(nil)

// call calls the handler, and the sub-handlers that it has left to us.
func (c *subhandlers) callParent(ctx context.Context, change *handler.Change) (any, error) {
	if err := c.parent.Call(ctx, change); err != nil {
		return nil, err
	}
	// The filters of sub-handlers can panic too.
	if err := handler.WithRecover(func() error { return c.Execute(ctx) }); err != nil {
		return nil, err
	}
	return NormalizeResult(change.Result())
}

// Register takes a sub-handler, or the reason why there is none.
func (c *subhandlers) Register(d *handler.Declaration, err error) {
	if err != nil {
		c.problems = append(c.problems, err)
		return
	}
	sub := d.Under(c.parent)
	if slices.ContainsFunc(c.handlers, func(other *handler.Declaration) bool { return other.ID == sub.ID }) {
		c.problems = append(c.problems, fmt.Errorf("%s: two sub-handlers have the id %q: each needs its own", d.DeclaredAt, sub.ID))
		return
	}
	c.handlers = append(c.handlers, sub)
}

// Execute runs the sub-handlers that are due. It returns nil when all of them
// are done, and a SubhandlersError when some must be waited for.
func (c *subhandlers) Execute(ctx context.Context) error {
	switch {
	case c.interrupted != nil:
		return &handler.SubhandlersError{}
	case len(c.problems) > 0:
		return handler.Permanent(errors.Join(c.problems...))
	}
	selected := c.handlers.Selected(c.runner.Cause)
	ids := c.include(selected)
	for _, due := range c.runner.selectDue(selected) {
		if err := c.runOne(ctx, due.Declaration); err != nil {
			return err
		}
	}
	if delay, waiting := c.runner.Progress.nextDelayOf(slices.Values(ids)); waiting {
		return &handler.SubhandlersError{Delay: delay}
	}
	return nil
}

// enter makes the sub-handlers take part in the cycle.
func (c *subhandlers) include(selected registry.Handlers) (ids []string) {
	carriedOver := c.runner.Progress.Load(c.parent.ID).carriedOver
	for _, d := range selected {
		c.runner.Progress.Include(d.ID, c.runner.Cause.Reason, carriedOver)
		c.addReferences(d.ID)
		ids = append(ids, d.ID)
	}
	return ids
}

// refer makes the parent's record, and those of its ancestors, point to the
// sub-handler's one, so that it can be found and purged without being declared.
func (c *subhandlers) addReferences(id string) {
	for _, above := range append(slices.Clone(c.ancestors), c) {
		c.runner.Progress.Load(above.parent.ID).addSubref(id)
	}
}

func (c *subhandlers) runOne(ctx context.Context, d *handler.Declaration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the parent's time is over
	}
	err := c.runner.BeforeAttempt(c.runner.ctx)
	if err == nil {
		err = c.runner.runHandler(ctx, d, append(slices.Clone(c.ancestors), c))
	}
	if err != nil {
		c.interrupted = err
		// The handler sees an error and returns; its attempt does not count.
		return &handler.SubhandlersError{}
	}
	return nil
}
