package otelkopf_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kopf-go/kopf/otelkopf"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// An operator with spans. The context of a handler has the span of its attempt.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // otlptracegrpc.New(ctx), for example
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { _ = provider.Shutdown(context.Background()) }()

	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopfexamples"), func(ctx context.Context, c *kopf.Change) error {
		size, _ := c.Spec().Int64("size")
		trace.SpanFromContext(ctx).SetAttributes(attribute.Int64("volume.size", size))
		return nil
	}, kopf.ID("create"))
	operator, err := kopf.NewOperator(kopf.Options{
		Registry: registry,
		Tracer:   otelkopf.NewTracer(otelkopf.WithTracerProvider(provider), otelkopf.WithAnnotationPrefix("example.com/")),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(operator.Handlers())
	// Output: [create]
}
