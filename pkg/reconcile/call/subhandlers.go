package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
)

// subhandlers are the sub-handlers that one call of a handler registers.
type subhandlers struct {
	runner    *Runner
	parent    *handler.Declaration
	ancestors []*subhandlers // of the calls that this call is made in

	handlers registry.Handlers
	problems []error
	// interrupted is the reason why the whole run had to end within the call.
	interrupted error
}

var _ handler.Subhandlers = (*subhandlers)(nil)

// Register adds a sub-handler, or the error of its declaration.
func (s *subhandlers) Register(d *handler.Declaration, err error) {
	if err != nil {
		s.problems = append(s.problems, err)
		return
	}
	sub := d.Under(s.parent)
	if slices.ContainsFunc(s.handlers, func(other *handler.Declaration) bool { return other.ID == sub.ID }) {
		s.problems = append(s.problems, fmt.Errorf("%s: two sub-handlers have the id %q: each needs its own", d.DeclaredAt, sub.ID))
		return
	}
	s.handlers = append(s.handlers, sub)
}

// Execute is execute for the code of the handler.
func (s *subhandlers) Execute(ctx context.Context) error {
	s.runner.Enter()
	defer s.runner.Leave()
	return s.execute(ctx)
}

// afterParent calls the sub-handlers that the handler did not execute, and returns its result.
func (s *subhandlers) afterParent(ctx context.Context, change *handler.Call) (any, error) {
	if len(s.handlers)+len(s.problems) > 0 || s.interrupted != nil {
		// Filters of sub-handlers can panic, too.
		if err := handler.WithRecover(func() error { return s.execute(ctx) }); err != nil {
			return nil, err
		}
	}
	return NormalizeResult(change.Result())
}

// execute runs the sub-handlers that are due. It returns nil when all of them are
// done, and a SubhandlersError while some are not.
func (s *subhandlers) execute(ctx context.Context) error {
	switch {
	case s.interrupted != nil:
		return &handler.SubhandlersError{}
	case len(s.problems) > 0:
		return handler.Permanent(errors.Join(s.problems...))
	}
	if err := s.handlers.CheckOrder(); err != nil {
		return handler.Permanent(err)
	}
	for _, d := range s.handlers {
		s.runner.Progress.Register(d.ID)
		if len(d.After)+len(d.AfterFailure) > 0 {
			s.runner.Progress.Load(s.parent.ID).ordersSubs = true
		}
	}
	selected := s.runner.Progress.WithEarlier(s.handlers.Selected(s.runner.Cause), s.handlers, s.runner.Cause)
	var ids []string // of those whose typed filters the object fits
	carriedOver := s.runner.Progress.Load(s.parent.ID).carriedOver
	for _, d := range selected {
		misfit := d.Misfit(s.runner.Cause)
		if misfit != nil && !s.runner.Progress.Load(d.ID).Finished() {
			s.runner.Progress.SetMisfit(d.ID, misfit)
			continue
		}
		s.runner.Progress.Include(d.ID, s.runner.Cause.Reason, carriedOver)
		// Its record can be found and purged through those of its parent and of all ancestors, without a declaration.
		for _, above := range append(slices.Clone(s.ancestors), s) {
			s.runner.Progress.Load(above.parent.ID).AddSubrefs(d.ID)
		}
		ids = append(ids, d.ID)
	}
	for _, due := range s.runner.selectDue(selected) {
		if err := s.runOne(ctx, due); err != nil {
			return err
		}
	}
	s.runner.Order(selected)
	delay, known := s.runner.Progress.nextDelayOf(slices.Values(ids))
	if known || slices.ContainsFunc(ids, func(id string) bool { return s.runner.Progress.Load(id).waiting }) {
		return &handler.SubhandlersError{Delay: delay}
	}
	for _, d := range selected {
		if err := s.runner.Progress.Misfit(d.ID); err != nil {
			return err // the handler waits with its sub-handler
		}
	}
	return nil
}

// runOne makes one attempt of a sub-handler. The error is the parent's.
func (s *subhandlers) runOne(ctx context.Context, d *handler.Declaration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the parent has run out of time
	}
	err := s.runner.BeforeAttempt(s.runner.ctx)
	if err == nil {
		call := s.runner.begin(ctx, d, append(slices.Clone(s.ancestors), s))
		if call == nil {
			return nil
		}
		call.Make()
		err = call.End()
	}
	if err != nil {
		s.interrupted = err
		return &handler.SubhandlersError{} // the parent gets an error and returns; its attempt does not count
	}
	return nil
}

// TopOf returns the id of the declared handler that a handler belongs to: that of the handler itself, or of the
// one that registers the sub-handler. It returns "" if there is none. Ids can begin with other ids, as those of
// handlers of fields do.
func TopOf(id string, declared []string) (top string) {
	for _, other := range declared {
		if (id == other || strings.HasPrefix(id, other+"/")) && len(other) > len(top) {
			top = other
		}
	}
	return top
}
