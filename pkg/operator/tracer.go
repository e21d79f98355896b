package operator

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// guardedTracer is the tracer of users, whose panics cost nothing but their span.
type guardedTracer struct {
	tracer tracing.Tracer
	logger logr.Logger
	logged *sync.Once
}

// guardTracer returns nil without a tracer.
func guardTracer(of tracing.Tracer, logger logr.Logger) tracing.Tracer {
	if of == nil {
		return nil
	}
	return guardedTracer{of, logger, &sync.Once{}}
}

// Start starts a span. After a failure, the context has none.
func (t guardedTracer) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	with := ctx
	var end func(tracing.Result)
	t.try(span.Kind, func() { with, end = t.tracer.Start(ctx, span) })
	if with == nil {
		with = ctx
	}
	if end == nil {
		return with, func(tracing.Result) {}
	}
	return with, func(r tracing.Result) { t.try(span.Kind, func() { end(r) }) }
}

// try calls code of users. Its first failure is logged: others would be as many as there are spans.
func (t guardedTracer) try(kind tracing.Kind, call func()) {
	err := handler.WithRecover(func() error {
		call()
		return nil
	})
	if err != nil {
		t.logged.Do(func() {
			t.logger.Error(err, "The tracer has failed. Some spans are missing. Other failures of it are not logged.", append(handler.StackValues(err), "span", string(kind))...)
		})
	}
}
