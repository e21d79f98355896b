package operator

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-go/kopf/pkg/tracing"
)

type tracerFunc func(context.Context, tracing.Span) (context.Context, func(tracing.Result))

func (f tracerFunc) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	return f(ctx, span)
}

type valueKey struct{}

func TestFailuresOfTheTracerCostOnlySpans(t *testing.T) {
	for name, test := range map[string]struct {
		start  tracerFunc
		lines  int
		failed string // a part of the only line
		has    bool   // the context has what the tracer adds
	}{
		"a tracer that works": {func(ctx context.Context, _ tracing.Span) (context.Context, func(tracing.Result)) {
			return context.WithValue(ctx, valueKey{}, 1), func(tracing.Result) {}
		}, 0, "", true},
		"one that returns nothing": {func(context.Context, tracing.Span) (context.Context, func(tracing.Result)) {
			return nil, nil
		}, 0, "", false},
		"one that panics": {func(context.Context, tracing.Span) (context.Context, func(tracing.Result)) {
			panic("broken")
		}, 1, "broken", false},
		"one that ends its goroutine": {func(context.Context, tracing.Span) (context.Context, func(tracing.Result)) {
			runtime.Goexit()
			return nil, nil
		}, 1, "Goexit", false},
		"one that panics at the end": {func(ctx context.Context, _ tracing.Span) (context.Context, func(tracing.Result)) {
			return context.WithValue(ctx, valueKey{}, 1), func(r tracing.Result) { panic(r.Err) }
		}, 1, "unlucky", true},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			guarded := guardTracer(test.start, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
			for range 3 {
				ctx, end := guarded.Start(t.Context(), tracing.Span{Kind: tracing.Pass})
				if ctx.Err() != nil || (ctx.Value(valueKey{}) != nil) != test.has {
					t.Errorf("got the context %v", ctx)
				}
				end(tracing.Result{Err: errors.New("unlucky")})
			}
			if len(lines) != test.lines || !strings.Contains(strings.Join(lines, ""), test.failed) {
				t.Errorf("got the log %q", lines)
			}
		})
	}
	if guardTracer(nil, funcr.New(func(string, string) {}, funcr.Options{})) != nil {
		t.Error("there is a tracer where there was none")
	}
}
