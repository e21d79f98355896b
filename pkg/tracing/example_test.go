package tracing_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/kopf-go/kopf/pkg/tracing"
)

// outline is a tracer that prints spans when they end, below each other.
type outline struct{}

type depth struct{}

func (outline) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	below, _ := ctx.Value(depth{}).(int)
	return context.WithValue(ctx, depth{}, below+1), func(r tracing.Result) {
		fmt.Printf("%s%s %s%s: %s\n", strings.Repeat("  ", below), span.Kind, span.Reason, span.Handler, r.Outcome)
	}
}

// An operator calls the tracer in kopf.Options for each span. Here, a cycle has one attempt of a handler.
func ExampleTracer() {
	var tracer tracing.Tracer = outline{} // for kopf.Options
	ctx, endCycle := tracer.Start(context.Background(), tracing.Span{Kind: tracing.Cycle, Reason: "create"})
	_, endAttempt := tracer.Start(ctx, tracing.Span{Kind: tracing.Attempt, Handler: "create_fn", Number: 1})
	endAttempt(tracing.Result{Outcome: "succeeded"})
	endCycle(tracing.Result{Outcome: "succeeded"})
	// Output:
	//   attempt create_fn: succeeded
	// cycle create: succeeded
}
