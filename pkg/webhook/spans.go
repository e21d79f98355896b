package webhook

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// traceReview starts the span of a review. Its parent is the span of the API server, if the request has one.
func (w *webhook) traceReview(ctx context.Context, request *admissionRequest, headers http.Header) (context.Context, func(*admissionv1.AdmissionReview)) {
	if w.Tracer == nil {
		return ctx, func(*admissionv1.AdmissionReview) {}
	}
	span := spanOf(request)
	span.Kind = tracing.Review
	span.Reason = string(request.Operation)
	span.Subresource = request.Subresource
	span.Origin = func(name string) (value string, isCause bool) { return headers.Get(name), true }
	ctx, end := w.Tracer.Start(ctx, span)
	return ctx, func(answer *admissionv1.AdmissionReview) {
		outcome := "denied"
		if answer.Response.Allowed {
			outcome = "allowed"
		}
		end(tracing.Result{Outcome: outcome})
	}
}

// traceAttempt starts the span of a call of a handler.
func (e *evaluation) traceAttempt(ctx context.Context, d *handler.Declaration) (context.Context, func(error)) {
	if e.Tracer == nil {
		return ctx, func(error) {}
	}
	span := spanOf(e.request)
	span.Kind = tracing.Attempt
	span.Reason = string(d.Kind)
	span.Handler = d.ID
	span.Declared = d.ID
	ctx, end := e.Tracer.Start(ctx, span)
	return ctx, func(err error) {
		var rejection *handler.AdmissionError
		switch {
		case err == nil:
			end(tracing.Result{Outcome: "succeeded"})
		case errors.As(err, &rejection): // the handler does what it is for
			end(tracing.Result{Outcome: "denied"})
		default:
			end(tracing.Result{Outcome: "failed", Err: err})
		}
	}
}

// spanOf returns a span about the object of a review.
func spanOf(request *admissionRequest) tracing.Span {
	body := request.Body()
	return tracing.Span{
		Resource: request.resource.String(), Namespace: request.Namespace, Name: request.Name, UID: string(body.UID()),
	}
}
