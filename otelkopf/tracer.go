// Package otelkopf makes spans of OpenTelemetry for what an operator does:
//
//	operator, err := kopf.NewOperator(kopf.Options{Registry: registry, Tracer: otelkopf.NewTracer()})
//
// The handling of a change is one trace: the cycle has passes, and these have the attempts of
// handlers and the writes of the operator. The context of a handler has the span of its attempt, so
// the spans of the handler and of its instrumented clients are below that. docs/tracing.md in the
// repository describes all spans.
package otelkopf

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-go/kopf/pkg/tracing"
)

// scope is the name of the instrumentation.
const scope = "github.com/kopf-go/kopf/otelkopf"

// tracer makes spans by a tracer of OpenTelemetry.
type tracer struct {
	provider   trace.TracerProvider
	propagator propagation.TextMapPropagator
	prefix     string // of annotations
	links      bool   // no span has a parent outside of the operator

	tracer trace.Tracer
}

var _ tracing.Tracer = (*tracer)(nil)

// Option changes what NewTracer returns.
type Option func(*tracer)

// WithTracerProvider sets where spans come from. Default: the global provider of OpenTelemetry.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(t *tracer) { t.provider = provider }
}

// WithPropagator sets how parents are read from annotations of objects, and from headers of
// admission reviews. Default: propagation.TraceContext, which reads "traceparent" and "tracestate".
// The global propagator of OpenTelemetry reads nothing unless the program sets it:
//
//	otelkopf.WithPropagator(otel.GetTextMapPropagator())
//
// A propagator of baggage also passes on the baggage that clients have left on objects.
func WithPropagator(propagator propagation.TextMapPropagator) Option {
	return func(t *tracer) { t.propagator = propagator }
}

// WithAnnotationPrefix sets what the names of annotations begin with, before the names that the
// propagator reads: with "example.com/", the annotation is "example.com/traceparent". It has no
// effect on headers. Default: nothing, so the annotation is "traceparent".
func WithAnnotationPrefix(prefix string) Option {
	return func(t *tracer) { t.prefix = prefix }
}

// WithPublicEndpoint begins a trace for each cycle and for each admission review, with a link to the
// span of the client. Without it, that span is the parent, and whoever can annotate an object decides
// which trace its cycles belong to and, by a sampler based on parents, whether they are recorded.
func WithPublicEndpoint() Option {
	return func(t *tracer) { t.links = true }
}

// NewTracer returns a tracer for kopf.Options. It is safe for concurrent use, and several
// operators can share it.
func NewTracer(options ...Option) tracing.Tracer {
	t := &tracer{propagator: propagation.TraceContext{}}
	for _, option := range options {
		option(t)
	}
	if t.provider == nil {
		t.provider = otel.GetTracerProvider()
	}
	t.tracer = t.provider.Tracer(scope)
	return t
}

// Start starts a span.
func (t *tracer) Start(ctx context.Context, s tracing.Span) (context.Context, func(tracing.Result)) {
	options := []trace.SpanStartOption{trace.WithSpanKind(kindOf(s)), trace.WithAttributes(attributesOf(s)...)}
	if !s.Began.IsZero() {
		options = append(options, trace.WithTimestamp(s.Began))
	}
	if s.Origin != nil {
		var client trace.SpanContext
		ctx, client = t.parentOf(ctx, s)
		if client.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: client}))
		}
	}
	ctx, span := t.tracer.Start(ctx, nameOf(s), options...)
	return ctx, func(r tracing.Result) { end(span, r) }
}

// parentOf returns a context with the parent of a span with an origin. If the span only has a link to its client, it
// also returns that.
func (t *tracer) parentOf(ctx context.Context, s tracing.Span) (with context.Context, linked trace.SpanContext) {
	if s.Kind == tracing.Review && trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, linked // the server makes spans itself
	}
	root := trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	c := &carrier{origin: s.Origin}
	if s.Kind != tracing.Review {
		c.prefix = t.prefix
	}
	remote := t.propagator.Extract(root, c)
	client := trace.SpanContextFromContext(remote)
	switch {
	case !client.IsValid():
		return root, linked
	case c.isCause && !t.links:
		return remote, linked
	default:
		return root, client
	}
}

// carrier reads what clients have left. The propagator checks it.
type carrier struct {
	origin  tracing.Origin
	prefix  string
	isCause bool // a value came with what the span is about
}

var _ propagation.TextMapCarrier = (*carrier)(nil)

// Get returns a value.
func (c *carrier) Get(name string) string {
	value, isCause := c.origin(c.prefix + name)
	c.isCause = c.isCause || isCause && value != ""
	return value
}

// Set does nothing: the operator leaves no traces on objects.
func (c *carrier) Set(string, string) {}

// Keys returns nothing, because propagators know what they look for.
func (c *carrier) Keys() []string { return nil }

// nameOf returns the name of a span. Names group spans, so they have nothing of which there can be as many as
// there are objects.
func nameOf(s tracing.Span) string {
	switch {
	case s.Kind == tracing.Attempt && s.Reason == "subhandler":
		return "subhandler " + s.Declared
	case s.Kind == tracing.Attempt:
		return "handler " + s.Declared
	case s.Reason != "":
		return string(s.Kind) + " " + s.Reason
	default:
		return string(s.Kind)
	}
}

func kindOf(s tracing.Span) trace.SpanKind {
	switch s.Kind {
	case tracing.Write:
		return trace.SpanKindClient
	case tracing.Review:
		return trace.SpanKindServer
	default:
		return trace.SpanKindInternal
	}
}

// attributesOf returns the attributes of a span, without those that are empty.
func attributesOf(s tracing.Span) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 9)
	for _, one := range []struct{ key, value string }{
		{"kopf.span", string(s.Kind)},
		{"kopf.resource", s.Resource},
		{"k8s.namespace.name", s.Namespace},
		{"kopf.object.name", s.Name},
		{"kopf.object.uid", s.UID},
		{"kopf.reason", s.Reason},
		{"kopf.handler", s.Handler},
		{"kopf.subresource", s.Subresource},
	} {
		if one.value != "" {
			all = append(all, attribute.String(one.key, one.value))
		}
	}
	if s.Number > 0 {
		all = append(all, attribute.Int("kopf.attempt", s.Number))
	}
	return all
}

// end ends a span. A handler that was interrupted has not failed.
func end(span trace.Span, r tracing.Result) {
	if r.Outcome != "" {
		span.SetAttributes(attribute.String("kopf.outcome", r.Outcome))
	}
	switch {
	case r.Err != nil && r.Outcome != "canceled":
		span.RecordError(r.Err)
		span.SetStatus(codes.Error, r.Err.Error())
	case r.Err == nil && r.Outcome == "failed":
		span.SetStatus(codes.Error, "a handler has failed")
	}
	span.End()
}
