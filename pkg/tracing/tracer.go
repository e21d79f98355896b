// Package tracing connects operators with systems for distributed tracing. It has no dependency on
// any of them: the module github.com/kopf-go/kopf/otelkopf is the adapter to OpenTelemetry.
package tracing

import (
	"context"
	"time"
)

// Tracer makes spans. It must be safe for concurrent use. A panic of its code is logged once, and
// the work goes on without the span; but a Tracer that blocks holds back what it is called for.
type Tracer interface {
	// Start starts a span, whose parent is the one in the context, unless the span has an Origin.
	// It returns a context that is derived from the given one and has the span, and a function that
	// ends the span, which is called once. Start must not keep the Origin.
	Start(ctx context.Context, span Span) (with context.Context, end func(Result))
}

// Kind is what a span is about.
type Kind string

// The kinds of spans.
const (
	// Cycle is the handling of one change of an object, from its detection until all handlers have
	// ended. Its children are passes. It ends early if the operator stops or pauses; the next one
	// goes on with another span.
	Cycle Kind = "cycle"
	// Pass is one look at an object, in which handlers are called or something is written.
	Pass Kind = "pass"
	// Attempt is one call of a handler.
	Attempt Kind = "attempt"
	// Write is one write of the operator, to the object or to a child.
	Write Kind = "write"
	// Review is one admission review, with the calls of its handlers.
	Review Kind = "review"
)

// Span describes a span when it starts.
type Span struct {
	Kind Kind
	// Resource, Namespace, Name, and UID identify the object. The resource has the form
	// "kopfexamples.v1.kopf.dev". The UID is empty if it is unknown, as for children that are applied.
	Resource, Namespace, Name, UID string
	// Reason is what a span of its kind is for: of a cycle, "create", "update", "delete", or "resume"; of
	// an attempt, the kind of its handler, as in the metrics; of a write, its purpose, such as
	// "progress" for the records of handlers; of a review, the operation, such as "CREATE".
	Reason string
	// Handler is the id of the handler of an attempt, and Declared that of its declaration. They differ for
	// sub-handlers and for handlers of children, of which there can be as many as there are objects.
	Handler, Declared string
	// Number is the number of an attempt: 1 for the first one. It is 0 for handlers that are not retried.
	Number int
	// Subresource is what a write or a review is about: "status", for example, or empty.
	Subresource string
	// Began is when the work began, if that was before. The zero value means now. A cycle that another
	// process has begun began when that process called the first handler.
	Began time.Time
	// Origin is set if the span does not belong to the one in the context.
	Origin Origin
}

// Origin looks up what clients have left about their traces, for a span that begins a trace in the
// operator. For a review, these are the headers of the request, and for all others, the annotations
// of the object. The values come from clients: they can be anything.
//
// If isCause is true, the value came with what the span is about. Otherwise, it has been there
// before, as the annotation of the creation when a later update is handled: the span does not
// belong to that trace, which has ended, but can be linked to it.
type Origin func(name string) (value string, isCause bool)

// Result is how a span has ended.
type Result struct {
	// Outcome is one word: of an attempt, "succeeded", "retried", "failed", "ignored", "waiting" for
	// sub-handlers, or "canceled"; of a write, "written", "conflict", "rejected", or "failed" if it is unknown
	// whether it is stored; of a cycle, "succeeded", "failed" if a handler has failed, "superseded" by
	// another change, "dropped" if no handler is for the object anymore, "gone", or
	// "interrupted" by the end of the operator or a pause; of a review, "allowed" or "denied". It is
	// empty for passes.
	Outcome string
	// Err is the error that the span has ended with, or nil.
	Err error
}
