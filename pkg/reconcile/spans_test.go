package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// Most operators have no tracer. They must not pay for those that have one.
func TestNoTracerCostsNothing(t *testing.T) {
	e := &Engine{}
	p := &pass{target: target{engine: e}}
	b := &background{engine: e}
	d := &handler.Declaration{ID: "fn", Kind: handler.OnTimer}
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		p.traceCycle(nil)
		_, end := p.traceAttempt(ctx, d, nil)
		end.End(call.Outcome{}, true)
		_, end = b.Trace(ctx, d, handler.Attempt{})
		end.End(call.Outcome{}, true)
		p.endSpan(errInterrupted)
		e.spans.endCycle(object.Key{}, "gone")
		e.spans.endHandled(object.Key{}, nil)
		e.spans.endAll()
	})
	if allocations > 0 || newSpans(nil) != nil {
		t.Errorf("without a tracer, there are %g allocations", allocations)
	}
	// What is kept while a handler waits has the sizes of the allocator that it has without spans.
	if pass, waiting := unsafe.Sizeof(pass{}), unsafe.Sizeof(call.Call{}); pass > 320 || waiting > 320 {
		t.Errorf("a pass takes %d bytes, and a call %d", pass, waiting)
	}
}

func TestOriginsOfCycles(t *testing.T) {
	essence := func(value any) object.Essence {
		if value == nil {
			return object.Essence{"spec": map[string]any{}}
		}
		return object.Essence{"metadata": map[string]any{"annotations": map[string]any{"traceparent": value}}}
	}
	body := object.NewBody(essence("b"))
	for name, test := range map[string]struct {
		before, after object.Essence
		want          bool
	}{
		"a creation":                    {nil, essence("b"), true},
		"an update with the annotation": {essence("a"), essence("b"), true},
		"one that adds it":              {essence(nil), essence("b"), true},
		"one that leaves it as it is":   {essence("b"), essence("b"), false},
		"one of which hashes are kept":  {essence("hash of b"), essence("hash of b"), false},
		"an annotation that is ignored": {essence(nil), essence(nil), true},
	} {
		value, isCause := originOf(body, test.before, test.after)("traceparent")
		if value != "b" || isCause != test.want {
			t.Errorf("%s: got %q %t", name, value, isCause)
		}
	}
	if value, _ := originOf(body, nil, essence("b"))("tracestate"); value != "" {
		t.Errorf("got %q", value)
	}
}

// ledger is a tracer that writes down spans when they end, below each other.
type ledger struct{ lines []string }

type depth struct{}

func (l *ledger) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	below, _ := ctx.Value(depth{}).(int)
	return context.WithValue(ctx, depth{}, below+1), func(r tracing.Result) {
		line := strings.Repeat("  ", below) + string(span.Kind)
		for _, word := range []string{span.Reason, r.Outcome} {
			if word != "" {
				line += " " + word
			}
		}
		if r.Err != nil {
			line += " (failed)"
		}
		l.lines = append(l.lines, line)
	}
}

func TestSpansOfPasses(t *testing.T) {
	later := handler.Temporary(errBroken, time.Hour)
	tests := map[string]struct {
		err  error // of the first call
		make func(l *lone)
		want []string
	}{
		"a pass, and one at rest": {nil, func(l *lone) { l.rest(); l.state().reconciledVersion = ""; l.rest() }, []string{
			"    attempt create succeeded", "    write handled written", "cycle create succeeded", "  pass",
		}},
		"a write that fails": {nil, func(l *lone) {
			l.server.before = func() error { return errBroken }
			_, _ = l.pass()
		}, []string{"    attempt create succeeded", "    write handled failed (failed)", "  pass (failed)"}},
		"the object is gone from the API server": {nil, func(l *lone) {
			l.server.before = func() error { l.server.remove(); return nil }
			_, _ = l.pass()
		}, []string{"    attempt create succeeded", "    write handled failed (failed)", "cycle create gone", "  pass"}},
		"the object is gone from the watch": {later, func(l *lone) {
			_, _ = l.pass()
			l.forget()
			_, _ = l.look()
		}, []string{"    attempt create retried (failed)", "    write progress written", "  pass", "cycle create gone"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := &ledger{}
				err := test.err
				l := newLone(t, m{}, func(r *registry.Registry) {
					r.Add(handler.Create(selector.New("kopfexamples"), handlertest.Function(func(context.Context, *handler.Call) error { return err }), handler.ID("create")))
				}, func(c *Config) { c.Tracer = spans })
				test.make(l)
				if !slices.Equal(spans.lines, test.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(spans.lines, "\n"), strings.Join(test.want, "\n"))
				}
			})
		})
	}
}
