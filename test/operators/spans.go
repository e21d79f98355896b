package operators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kopf-go/kopf/pkg/tracing"
)

// Spans is a tracer that remembers its spans. It is safe for concurrent use.
type Spans struct {
	mu  sync.Mutex
	all []*RecordedSpan
}

var _ tracing.Tracer = (*Spans)(nil)

// RecordedSpan is a span of Spans.
type RecordedSpan struct {
	tracing.Span
	Parent *RecordedSpan
	Result tracing.Result
	// Started and Ended are the times of the calls. Ends counts the calls of the function that ends the span.
	Started, Ended time.Time
	Ends           int
	// From is the annotation or the header traceparent of a span with an origin, and IsCause whether it came with
	// what the span is about.
	From    string
	IsCause bool
}

type spanKey struct{}

// Start starts a span.
func (s *Spans) Start(ctx context.Context, about tracing.Span) (context.Context, func(tracing.Result)) {
	span := &RecordedSpan{Span: about, Started: time.Now()}
	if about.Origin != nil {
		span.From, span.IsCause = about.Origin("traceparent")
	} else {
		span.Parent = SpanOf(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, span)
	return context.WithValue(ctx, spanKey{}, span), func(r tracing.Result) {
		s.mu.Lock()
		defer s.mu.Unlock()
		span.Result = r
		span.Ended = time.Now()
		span.Ends++
	}
}

// SpanOf returns the span of a context, or nil.
func SpanOf(ctx context.Context) *RecordedSpan {
	span, _ := ctx.Value(spanKey{}).(*RecordedSpan)
	return span
}

// All returns copies of all spans in the order of their starts.
func (s *Spans) All() (all []RecordedSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.all {
		all = append(all, *span)
	}
	return all
}

// Of returns copies of the spans of a kind.
func (s *Spans) Of(kind tracing.Kind) []RecordedSpan {
	return slices.DeleteFunc(s.All(), func(span RecordedSpan) bool { return span.Kind != kind })
}

// Tree returns the spans as lines of a text, those with a parent below it.
func (s *Spans) Tree() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	s.write(&text, nil, "")
	return text.String()
}

func (s *Spans) write(text *strings.Builder, parent *RecordedSpan, indent string) {
	for _, span := range s.all {
		if span.Parent == parent {
			fmt.Fprintf(text, "%s%s\n", indent, span)
			s.write(text, span, indent+"  ")
		}
	}
}

// String returns the kind of the span, what it is about, and how it has ended.
func (s *RecordedSpan) String() string {
	words := []string{string(s.Kind)}
	for _, one := range []string{s.Reason, s.Handler, s.Subresource} {
		if one != "" {
			words = append(words, one)
		}
	}
	if s.Number > 0 {
		words = append(words, fmt.Sprint(s.Number))
	}
	switch {
	case s.Ends == 0:
		words = append(words, "(open)")
	case s.Result.Err != nil:
		text := s.Result.Err.Error()
		words = append(words, fmt.Sprintf("(%s: %s)", s.Result.Outcome, strings.TrimSpace(text[strings.LastIndex(text, ": ")+1:])))
	case s.Result.Outcome != "":
		words = append(words, "("+s.Result.Outcome+")")
	}
	return strings.Join(words, " ")
}
