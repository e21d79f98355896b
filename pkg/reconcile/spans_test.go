package reconcile

import (
	"testing"
	"unsafe"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
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
