package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/tracing"
	"github.com/kopf-go/kopf/pkg/webhook"
)

// spans is a tracer that writes down how spans end, with what they are within.
type spans struct{ ended []string }

type spanKey struct{}

func (s *spans) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	name := fmt.Sprintf("%s %s%s %s/%s %s", span.Kind, span.Reason, span.Handler, span.Namespace, span.Name, span.UID)
	if span.Origin != nil {
		parent, isCause := span.Origin("traceparent")
		name = fmt.Sprintf("%s of %s %t", name, parent, isCause)
	} else {
		name = fmt.Sprintf("%s in %v", name, ctx.Value(spanKey{}))
	}
	return context.WithValue(ctx, spanKey{}, string(span.Kind)), func(r tracing.Result) {
		s.ended = append(s.ended, fmt.Sprintf("%s: %s %v", name, r.Outcome, r.Err))
	}
}

func TestReviewsHaveSpans(t *testing.T) {
	for name, test := range map[string]struct {
		err           error
		outcome, last string
	}{
		"a review that is allowed": {nil, "succeeded <nil>", "allowed"},
		"one that is denied":       {&handler.AdmissionError{Message: "too small"}, "denied <nil>", "denied"},
		"one whose handler fails":  {errors.New("broken"), "failed broken", "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handlers{t: t}
			var within any
			h.validate("check", func(ctx context.Context, _ *handler.Call) error {
				within = ctx.Value(spanKey{})
				return test.err
			})
			s := &spans{}
			w := h.serve(func(o *webhook.Options) { o.Tracer = s })
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(encode(t, review(example(nil)))))
			request.Header.Set("Traceparent", "theirs")
			w.ServeHTTP(httptest.NewRecorder(), request)
			want := []string{
				"attempt validatecheck ns/one u-1 in review: " + test.outcome,
				"review CREATE ns/one u-1 of theirs true: " + test.last + " <nil>",
			}
			if !slices.Equal(s.ended, want) || within != "attempt" {
				t.Errorf("got %q within %v, want %q", s.ended, within, want)
			}
		})
	}
}
