package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// startups are the startup handlers of a worker that have ended. What they leave in the memory of the worker is lost
// with its process, so the next process calls them again.
type startups struct {
	mu    sync.Mutex
	ended []startup
}

// startup is a startup handler that has ended.
type startup struct {
	handler *handler
	param   any
	logger  logr.Logger
}

func (s *startups) add(one startup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, one)
}

// repeat calls the handlers in a new process, one after the other, as they have ended.
func (s *startups) repeat(ctx context.Context, process protocol.Caller) error {
	s.mu.Lock()
	all := slices.Clone(s.ended)
	s.mu.Unlock()
	for _, one := range all {
		if err := one.repeat(ctx, process); err != nil {
			return fmt.Errorf("its startup handler %q has failed after the restart: %w", one.handler.id, err)
		}
	}
	return nil
}

// repeat calls the handler until it succeeds. An error that is not temporary ends the process: the handler is called
// again in the next one.
func (s startup) repeat(ctx context.Context, process protocol.Caller) error {
	first := time.Now()
	for retry := 0; ; retry++ {
		call := s.handler.newCall(protocol.Startup, s.param)
		call.Retry = retry
		call.Started = &first
		call.Runtime = time.Since(first).Seconds()
		err := s.attempt(ctx, process, call)
		var temporary *kopf.TemporaryError
		switch {
		case err == nil:
			return nil
		case s.handler.ignores(err):
			s.logger.Error(err, "The startup handler has failed after the restart of its worker; its errors are ignored.")
			return nil
		case !errors.As(err, &temporary):
			return err
		}
		s.logger.Info("The startup handler is called again after the restart of its worker.", "error", err.Error(), "delay", temporary.Delay.String())
		select {
		case <-time.After(temporary.Delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// attempt makes one call.
func (s startup) attempt(ctx context.Context, process protocol.Caller, call *protocol.Call) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.handler.timeout, errCallTimeout)
	defer cancel()
	reply, err := process.Call(limited, call, &protocol.Conversation{Log: logTo(s.logger)})
	if err != nil {
		return kopf.Permanent(err) // for this process
	}
	return failure(reply.Error)
}
