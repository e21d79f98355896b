package reconcile

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// spans makes the spans of the objects of an engine. Without a tracer, it is nil, and the engine keeps
// nothing for it.
//
// The span of a cycle is the parent of those of its passes, and these are the parents of attempts and
// writes. The first two are started when they are needed: a pass that only looks has none.
type spans struct {
	tracer tracing.Tracer

	mu sync.Mutex
	// cycles are the open cycles. Only the pass over an object opens one.
	cycles map[object.Key]*cycleSpan
}

// cycleSpan is the span of an open cycle.
type cycleSpan struct {
	uid    types.UID
	reason cause.Reason
	ctx    context.Context // has nothing but the span
	end    func(tracing.Result)
}

// passSpan is the span of a pass. A pass that goes on with another cycle has another one for it.
type passSpan struct {
	began time.Time
	ctx   context.Context // has nothing but the span; nil before its start
	end   func(tracing.Result)
}

func newSpans(tracer tracing.Tracer) *spans {
	if tracer == nil {
		return nil
	}
	return &spans{tracer: tracer, cycles: map[object.Key]*cycleSpan{}}
}

// within is a context with the span of another one. It ends with the first, and has the values of both. The other
// one never ends, so the functions of package context find the end of the first.
type within struct {
	context.Context
	span context.Context
}

// Value returns a value of the span, or else of the context that ends.
func (w within) Value(key any) any {
	value := w.span.Value(key)
	if value == nil {
		value = w.Context.Value(key)
	}
	return value
}

// cycle returns the span of the object's open cycle, or nil.
func (s *spans) cycle(key object.Key) *cycleSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cycles[key]
}

// endCycle ends the span of the object's open cycle, if there is one.
func (s *spans) endCycle(key object.Key, outcome string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	open := s.cycles[key]
	delete(s.cycles, key)
	s.mu.Unlock()
	if open != nil {
		open.end(tracing.Result{Outcome: outcome})
	}
}

// endHandled ends the span of a cycle whose handlers have ended.
func (s *spans) endHandled(key object.Key, progress *call.Progress) {
	if s == nil {
		return
	}
	outcome := "succeeded"
	if _, failed := progress.Counts(); failed > 0 {
		outcome = "failed"
	}
	s.endCycle(key, outcome)
}

// endAll ends the spans of all open cycles at the end of the work. It does not wait long for a tracer that blocks:
// a pause ends.
func (s *spans) endAll() {
	if s == nil {
		return
	}
	s.mu.Lock()
	open := s.cycles
	s.cycles = map[object.Key]*cycleSpan{}
	s.mu.Unlock()
	if len(open) == 0 {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, one := range open {
			one.end(tracing.Result{Outcome: "interrupted"})
		}
	}()
	select {
	case <-ended:
	case <-time.After(abandonDelay):
	}
}

// attempt starts the span of a call of a handler.
func (s *spans) attempt(ctx context.Context, d *handler.Declaration, span tracing.Span) (context.Context, call.EndSpan) {
	span.Kind = tracing.Attempt
	span.Reason = string(d.Kind)
	span.Handler = handler.ReportedID(d)
	span.Declared = d.Top().ID
	ctx, end := s.tracer.Start(ctx, span)
	return ctx, func(o call.Outcome, counts bool) {
		result := tracing.Result{Outcome: string(outcomeOf(o)), Err: o.Err}
		switch {
		case !counts:
			result.Outcome = "canceled"
		case o.Ignored != nil:
			result.Err = o.Ignored
		case outcomeOf(o) == metrics.Waiting:
			result.Err = nil // to wait is no error
		}
		end(result)
	}
}

// single starts the span of an attempt that belongs to no pass. It begins a trace, with a link to what is left on the
// object.
func (s *spans) single(ctx context.Context, d *handler.Declaration, key object.Key, body *object.Body, number int, began time.Time) (context.Context, call.EndSpan) {
	span := spanOf(key, body.UID())
	span.Number = number
	span.Began = began
	span.Origin = annotationsOf(body)
	return s.attempt(ctx, d, span)
}

// spanOf returns a span about an object.
func spanOf(key object.Key, uid types.UID) tracing.Span {
	return tracing.Span{Resource: key.Resource, Namespace: key.Namespace, Name: key.Name, UID: string(uid)}
}

// annotationsOf returns the origin of what is not about a change of the object.
func annotationsOf(body *object.Body) tracing.Origin {
	return func(name string) (value string, isCause bool) {
		value, _ = body.Annotation(name)
		return value, false
	}
}

// originOf returns the origin of a cycle. An annotation came with its change, unless it was handled before. Values in
// essences can be hashes, so only essences can be compared.
func originOf(body *object.Body, before, after object.Essence) tracing.Origin {
	return func(name string) (value string, isCause bool) {
		value, _ = body.Annotation(name)
		current := annotationIn(after, name)
		return value, current == nil || !object.Equal(annotationIn(before, name), current)
	}
}

// annotationIn returns an annotation of an essence, or nil if it is not a part of that.
func annotationIn(essence object.Essence, name string) any {
	metadata, _ := essence["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[name]
}

// traceCycle ends the span of the cycle that the plan does not continue, and starts that of a cycle with handlers.
func (p *pass) traceCycle(c *cycle) {
	if p.span == nil {
		return
	}
	s := p.engine.spans
	body := p.session.Body()
	open := s.cycle(p.key)
	switch {
	case open == nil:
	case c.NothingToDo():
		s.endCycle(p.key, "dropped")
	case open.reason != c.Reason || open.uid != body.UID():
		s.endCycle(p.key, "superseded")
		open = nil
	}
	if open != nil || c.NothingToDo() || len(c.Handlers) == 0 {
		return
	}
	began := p.span.began
	p.endSpan(nil) // what the pass has done so far does not belong to this cycle
	span := spanOf(p.key, body.UID())
	span.Kind = tracing.Cycle
	span.Reason = string(c.Reason)
	span.Began = began
	if since := c.Cycle.Progress.Stored().Since(c.Reason); !since.IsZero() && since.Before(began) {
		span.Began = since // of another process
	}
	span.Origin = originOf(body, c.Old, c.New)
	begun := &cycleSpan{uid: body.UID(), reason: c.Reason}
	begun.ctx, begun.end = s.tracer.Start(context.Background(), span)
	s.mu.Lock()
	s.cycles[p.key] = begun
	s.mu.Unlock()
}

// spanContext returns a context with the span of the pass, which it starts if necessary.
func (p *pass) spanContext() context.Context {
	if p.span.ctx != nil {
		return p.span.ctx
	}
	span := spanOf(p.key, p.object.writes.UID())
	span.Kind = tracing.Pass
	span.Began = p.span.began
	ctx := context.Background()
	if open := p.engine.spans.cycle(p.key); open != nil {
		ctx = open.ctx
	} else if body := p.session.Body(); body != nil {
		span.Origin = annotationsOf(body)
	}
	p.span.ctx, p.span.end = p.engine.spans.tracer.Start(ctx, span)
	return p.span.ctx
}

// endSpan ends the span of the pass. A pass that has failed has one in any case.
func (p *pass) endSpan(err error) {
	if p.span == nil {
		return
	}
	if err != nil {
		p.spanContext()
	}
	if p.span.ctx != nil {
		p.span.end(tracing.Result{Err: err})
	}
	*p.span = passSpan{began: time.Now()}
}

// traceAttempt starts the span of a call in the pass. The context of a sub-handler has the span of its parent.
func (p *pass) traceAttempt(ctx context.Context, d *handler.Declaration, c *cycle) (context.Context, call.EndSpan) {
	if p.span == nil {
		return ctx, nil
	}
	if d.Kind != handler.Subhandler {
		ctx = within{ctx, p.spanContext()}
	}
	span := spanOf(p.key, p.object.writes.UID())
	progress := c.calls.progressOf(d.ID)
	if progress == nil {
		progress = c.Cycle.Progress
	}
	span.Number = progress.Load(d.ID).Retries + 1
	return p.engine.spans.attempt(ctx, d, span)
}

// traceWrite starts the span of a write in the pass.
func (p *pass) traceWrite(ctx context.Context, subresource string, reason metrics.Reason) (context.Context, func(metrics.Answer, error)) {
	span := spanOf(p.key, p.object.writes.UID())
	span.Kind = tracing.Write
	span.Reason = string(reason)
	span.Subresource = subresource
	ctx, end := p.engine.spans.tracer.Start(within{ctx, p.spanContext()}, span)
	return ctx, func(answer metrics.Answer, err error) { end(tracing.Result{Outcome: string(answer), Err: err}) }
}
