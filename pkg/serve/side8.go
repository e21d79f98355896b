package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
	"github.com/kopf-go/kopf/pkg/serve/side8"
)

// side8Programs are the programs for a resource by the convention of Side8's operator.
type side8Programs struct {
	program  *Program
	served   *served
	declared *document.Side8
}

// stepPause is the pause between two steps: a program that never writes the same status twice does not use up the machine.
const stepPause = time.Second

// declareSide8 declares the programs: apply as a daemon, which looks at the object after each change, and delete as a
// deletion handler.
func declareSide8(r *kopf.Registry, s *side8Programs) {
	d := s.declared
	options := []kopf.BackgroundOption{kopf.ID("apply"), kopf.DeclaredAt(d.Place)}
	for _, field := range []string{"spec", "status", "metadata.labels", "metadata.annotations"} {
		options = append(options, kopf.WakeOn(field))
	}
	r.Daemon(d.Resource, s.apply, options...)
	if len(d.Delete.Command) > 0 {
		r.OnDelete(d.Resource, s.remove, kopf.ID("delete"), kopf.DeclaredAt(d.Place))
	}
}

// apply calls the program as long as that changes the status, and after each change of the object. Each step is stored.
func (s *side8Programs) apply(ctx context.Context, t *kopf.Task) error {
	for {
		object, err := t.Body().JSON()
		if err != nil {
			return fmt.Errorf("the object cannot be encoded: %w", err)
		}
		status, err := s.call(ctx, s.declared.Apply, object, t.Logger(), t.Stopped())
		if err != nil {
			return err
		}
		changed, err := side8.Changes(object, status)
		if err != nil {
			return err
		}
		pause := time.Duration(math.MaxInt64)
		if changed {
			pause = stepPause
			t.Patch().Merge(map[string]any{"status": status})
			if err := t.Write(ctx); err != nil {
				return err
			}
		}
		if t.WaitForChange(pause) {
			return nil
		}
	}
}

// remove calls the program until it writes nothing. What it writes is stored for the next call.
func (s *side8Programs) remove(ctx context.Context, c *kopf.Change) error {
	object, err := c.Body().JSON()
	if err != nil {
		return fmt.Errorf("the object cannot be encoded: %w", err)
	}
	status, err := s.call(ctx, s.declared.Delete, object, c.Logger(), nil)
	if err != nil || len(status) == 0 {
		return err
	}
	c.Patch().Merge(map[string]any{"status": status})
	return kopf.Temporary(errors.New("the program has written a status: it has more to do"), stepPause)
}

// call executes a program, and returns the status that it writes.
func (s *side8Programs) call(ctx context.Context, of document.Program, object []byte, logger logr.Logger, stopped <-chan struct{}) (map[string]any, error) {
	fields, err := side8.Variables(object)
	if err != nil {
		return nil, err
	}
	if err := s.program.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer s.program.gate.leave()
	select {
	case s.served.calls <- struct{}{}:
		defer func() { <-s.served.calls }()
	case <-stopped:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	limits := s.served.Limits
	ctx, cancel := context.WithTimeoutCause(ctx, limits.CallTimeout, errCallTimeout)
	defer cancel()
	program := s.served.program(of)
	program.Environment = append(program.Environment, fields...)
	done, err := s.program.starter.Execute(ctx, program, nil, limits.Output, &protocol.Conversation{Log: logTo(logger), Stopped: stopped})
	switch {
	case errors.Is(err, errCallTimeout):
		return nil, fmt.Errorf("the program was canceled after %s, which is the callTimeout of limits", limits.CallTimeout)
	case err != nil:
		return nil, err
	case done.Exit != nil && done.Stopped:
		return nil, nil
	case done.Exit != nil:
		return nil, errors.New(done.Failure())
	}
	return side8.Status(done.Output)
}
