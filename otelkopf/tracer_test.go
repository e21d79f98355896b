package otelkopf_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-go/kopf/otelkopf"
	"github.com/kopf-go/kopf/pkg/tracing"
)

const (
	theirTrace = "0af7651916cd43dd8448eb211c80319c"
	theirSpan  = "b7ad6b7169203331"
	parent     = "00-" + theirTrace + "-" + theirSpan + "-01"
)

// newProvider returns a provider whose spans are exported at their ends.
func newProvider(t *testing.T) (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider, exporter
}

// left is an origin.
func left(isCause bool, values map[string]string) tracing.Origin {
	return func(name string) (string, bool) { return values[name], isCause }
}

func TestParents(t *testing.T) {
	annotated := map[string]string{"traceparent": parent}
	for name, test := range map[string]struct {
		span    tracing.Span
		options []otelkopf.Option
		inside  bool // of another span of the program
		// want is "child" of the client, "linked" to it, "inside" of the other span, or "new" trace.
		want string
	}{
		"a cycle that the client has caused": {tracing.Span{Kind: tracing.Cycle, Origin: left(true, annotated)}, nil, false, "child"},
		"one in a program with spans":        {tracing.Span{Kind: tracing.Cycle, Origin: left(true, annotated)}, nil, true, "child"},
		"one that it has not":                {tracing.Span{Kind: tracing.Cycle, Origin: left(false, annotated)}, nil, true, "linked"},
		"one without an annotation":          {tracing.Span{Kind: tracing.Cycle, Origin: left(true, nil)}, nil, true, "new"},
		"a value that is no parent":          {tracing.Span{Kind: tracing.Cycle, Origin: left(true, map[string]string{"traceparent": "00-zz-\x00"})}, nil, true, "new"},
		"a trace of zeros": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, map[string]string{"traceparent": "00-00000000000000000000000000000000-" + theirSpan + "-01"})},
			nil, true, "new",
		},
		"a state that is none": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, map[string]string{"traceparent": parent, "tracestate": strings.Repeat("=", 100000)})},
			nil, true, "child",
		},
		"another annotation": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, annotated)},
			[]otelkopf.Option{otelkopf.WithAnnotationPrefix("example.com/")},
			false, "new",
		},
		"an annotation with a prefix": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, map[string]string{"example.com/traceparent": parent})},
			[]otelkopf.Option{otelkopf.WithAnnotationPrefix("example.com/")},
			false, "child",
		},
		"a header of a review": {
			tracing.Span{Kind: tracing.Review, Origin: left(true, annotated)},
			[]otelkopf.Option{otelkopf.WithAnnotationPrefix("example.com/")},
			false, "child",
		},
		"a review of a server with spans": {tracing.Span{Kind: tracing.Review, Origin: left(true, annotated)}, nil, true, "inside"},
		"a client that is not trusted": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, annotated)},
			[]otelkopf.Option{otelkopf.WithPublicEndpoint()},
			false, "linked",
		},
		"another propagator": {
			tracing.Span{Kind: tracing.Cycle, Origin: left(true, annotated)},
			[]otelkopf.Option{otelkopf.WithPropagator(otel.GetTextMapPropagator())},
			false, "new",
		},
		"a span without an origin": {tracing.Span{Kind: tracing.Attempt}, nil, true, "inside"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, exporter := newProvider(t)
			tracer := otelkopf.NewTracer(append(test.options, otelkopf.WithTracerProvider(provider))...)
			ctx := t.Context()
			if test.inside {
				var outer trace.Span
				ctx, outer = provider.Tracer("").Start(ctx, "outer")
				defer outer.End()
			}
			outer := trace.SpanContextFromContext(ctx)
			with, end := tracer.Start(ctx, test.span)
			end(tracing.Result{})
			span := exporter.GetSpans()[0]
			if trace.SpanContextFromContext(with).SpanID() != span.SpanContext.SpanID() {
				t.Error("the context does not have the span")
			}
			var got string
			switch {
			case span.Parent.SpanID().String() == theirSpan && span.SpanContext.TraceID().String() == theirTrace && len(span.Links) == 0:
				got = "child"
			case outer.IsValid() && span.Parent.SpanID() == outer.SpanID() && len(span.Links) == 0:
				got = "inside"
			case !span.Parent.IsValid() && len(span.Links) == 1 && span.Links[0].SpanContext.SpanID().String() == theirSpan:
				got = "linked"
			case !span.Parent.IsValid() && len(span.Links) == 0:
				got = "new"
			}
			if got != test.want || got != "inside" && outer.IsValid() && span.SpanContext.TraceID() == outer.TraceID() {
				t.Errorf("got %q with the parent %v and the links %v, want %q", got, span.Parent, span.Links, test.want)
			}
		})
	}
}

// Only a propagator that asks for baggage gets it.
func TestBaggage(t *testing.T) {
	provider, _ := newProvider(t)
	annotated := left(true, map[string]string{"traceparent": parent, "baggage": "team=web"})
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for want, options := range map[string][]otelkopf.Option{"": nil, "web": {otelkopf.WithPropagator(both)}} {
		tracer := otelkopf.NewTracer(append(options, otelkopf.WithTracerProvider(provider))...)
		ctx, end := tracer.Start(t.Context(), tracing.Span{Kind: tracing.Cycle, Origin: annotated})
		end(tracing.Result{})
		if got := baggage.FromContext(ctx).Member("team").Value(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhatSpansSay(t *testing.T) {
	about := tracing.Span{Resource: "as.v1.b", Namespace: "ns", Name: "one", UID: "u-1"}
	of := func(kind tracing.Kind, change func(*tracing.Span)) tracing.Span {
		span := about
		span.Kind = kind
		change(&span)
		return span
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		span   tracing.Span
		result tracing.Result
		want   string
	}{
		"a cycle": {
			of(tracing.Cycle, func(s *tracing.Span) { s.Reason = "create" }),
			tracing.Result{Outcome: "succeeded"},
			"cycle create, internal, Unset, kopf.reason=create kopf.outcome=succeeded",
		},
		"a cycle with a handler that has failed": {
			of(tracing.Cycle, func(s *tracing.Span) { s.Reason = "update" }),
			tracing.Result{Outcome: "failed"},
			"cycle update, internal, Error: a handler has failed, kopf.reason=update kopf.outcome=failed",
		},
		"a pass": {of(tracing.Pass, func(*tracing.Span) {}), tracing.Result{}, "pass, internal, Unset,"},
		"a pass that fails": {
			of(tracing.Pass, func(*tracing.Span) {}), tracing.Result{Err: broken}, "pass, internal, Error: broken,",
		},
		"an attempt": {
			of(tracing.Attempt, func(s *tracing.Span) {
				s.Reason = "update"
				s.Handler = "fn/spec.x"
				s.Declared = "fn/spec.x"
				s.Number = 2
			}),
			tracing.Result{Outcome: "retried", Err: broken},
			"handler fn/spec.x, internal, Error: broken, kopf.reason=update kopf.handler=fn/spec.x kopf.attempt=2 kopf.outcome=retried",
		},
		"a sub-handler that is interrupted": {
			of(tracing.Attempt, func(s *tracing.Span) {
				s.Reason = "subhandler"
				s.Handler = "fn/item-4711"
				s.Declared = "fn"
			}),
			tracing.Result{Outcome: "canceled", Err: context.Canceled},
			"subhandler fn, internal, Unset, kopf.reason=subhandler kopf.handler=fn/item-4711 kopf.outcome=canceled",
		},
		"a write": {
			of(tracing.Write, func(s *tracing.Span) {
				s.Reason = "status"
				s.Subresource = "status"
			}),
			tracing.Result{Outcome: "conflict", Err: broken},
			"write status, client, Error: broken, kopf.reason=status kopf.subresource=status kopf.outcome=conflict",
		},
		"a review": {
			of(tracing.Review, func(s *tracing.Span) { s.Reason = "CREATE" }),
			tracing.Result{Outcome: "denied"},
			"review CREATE, server, Unset, kopf.reason=CREATE kopf.outcome=denied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider, exporter := newProvider(t)
			_, end := otelkopf.NewTracer(otelkopf.WithTracerProvider(provider)).Start(t.Context(), test.span)
			end(test.result)
			span := exporter.GetSpans()[0]
			status := span.Status.Code.String()
			if span.Status.Code == codes.Error {
				status += ": " + span.Status.Description
			}
			common := []string{"kopf.span=" + string(test.span.Kind), "kopf.resource=as.v1.b", "k8s.namespace.name=ns", "kopf.object.name=one", "kopf.object.uid=u-1"}
			var others []string
			for _, a := range span.Attributes {
				text := string(a.Key) + "=" + a.Value.String()
				if i := slices.Index(common, text); i >= 0 {
					common = slices.Delete(common, i, i+1)
				} else {
					others = append(others, text)
				}
			}
			got := strings.TrimSpace(fmt.Sprintf("%s, %s, %s, %s", span.Name, span.SpanKind, status, strings.Join(others, " ")))
			if got != test.want || len(common) > 0 {
				t.Errorf("got %q without %q, want %q", got, common, test.want)
			}
			if errs := len(span.Events); (errs > 0) != (span.Status.Code == codes.Error && test.result.Err != nil) {
				t.Errorf("got the events %v", span.Events)
			}
		})
	}
}

// A span can begin in the past, and the global provider is asked when the tracer is made.
func TestDefaults(t *testing.T) {
	provider, exporter := newProvider(t)
	former := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	defer otel.SetTracerProvider(former)
	began := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	_, end := otelkopf.NewTracer().Start(t.Context(), tracing.Span{Kind: tracing.Pass, Began: began})
	end(tracing.Result{})
	span := exporter.GetSpans()[0]
	if !span.StartTime.Equal(began) || !span.EndTime.After(began) {
		t.Errorf("got %v to %v", span.StartTime, span.EndTime)
	}
	if span.InstrumentationScope.Name != "github.com/kopf-go/kopf/otelkopf" {
		t.Errorf("got %v", span.InstrumentationScope)
	}
	if slices.ContainsFunc(span.Attributes, func(a attribute.KeyValue) bool { return a.Value.String() == "" }) {
		t.Errorf("got empty attributes in %v", span.Attributes)
	}
}
