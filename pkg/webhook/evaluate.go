package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// evaluation calls the handlers for one review. Except for the warnings, it must be
// used by one goroutine only.
type evaluation struct {
	*webhook
	request  *admissionRequest
	review   *handler.Review // with the changes of the mutating handlers so far
	called   registry.Handlers
	warnings warnings
	errors   []error
	log      logr.Logger
}

// evaluate calls the handlers that match the request, mutating handlers first.
func (w *webhook) evaluate(ctx context.Context, request *admissionRequest, handlers registry.Handlers) *evaluation {
	e := &evaluation{webhook: w, request: request, review: request.Review, log: w.Logger.WithValues(
		"object", objectReference{request}, "resource", request.resource.String(), "operation", request.Operation)}
	if request.Subresource != "" {
		e.log = e.log.WithValues("subresource", request.Subresource)
	}
	request.Warn = e.warnings.add
	for _, kind := range []handler.Kind{handler.OnMutate, handler.OnValidate} {
		for _, d := range handlers {
			if d.Kind == kind && d.Selector.Match(request.resource) {
				e.callIfSelected(ctx, d)
			}
		}
	}
	return e
}

// callIfSelected calls the handler if it selects the object with the changes so far.
// A handler that is declared several times is called once.
func (e *evaluation) callIfSelected(ctx context.Context, d *handler.Declaration) {
	if slices.ContainsFunc(e.called, d.IsSame) {
		return
	}

	// The handler sees the object with the changes of the earlier mutating handlers.
	body := e.review.Body()
	call := handler.CallContext{
		Body: body, Patch: &patch.Patch{}, Resource: &e.request.resource,
		Logger: e.log.WithValues("handler", d.ID), Client: e.Client,
	}
	if e.Memo != nil {
		name := types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}
		call.Memo = func() *memo.Values {
			if e.request.Operation == admissionv1.Create { // its uid is lost if another webhook rejects the creation
				return e.Memo(e.request.resource, name, "")
			}
			return e.Memo(e.request.resource, name, body.UID())
		}
	}

	selected := false
	err := handler.WithRecover(func() error {
		selected = d.Selects(&handler.Cause{CallContext: call, Review: e.review})
		return nil
	})
	if err == nil && !selected {
		return
	}
	e.called = append(e.called, d)
	began := time.Now()
	if err == nil {
		err = e.callHandler(ctx, d, call)
	}
	if misfit := handler.AsMisfit(err); misfit != nil {
		err = e.answerMisfit(d, call.Logger, misfit)
	}
	e.Measure(d, err, time.Since(began))
	e.recordOutcome(d, call.Logger, err)
}

// callHandler calls the handler and applies its patch to the review.
func (e *evaluation) callHandler(ctx context.Context, d *handler.Declaration, call handler.CallContext) error {
	if ctx.Err() != nil {
		return fmt.Errorf("no time was left to call the handler %s", d.ID)
	}
	arguments := handler.NewCall(d, call, handler.Attempt{})
	arguments.Review = e.review
	ctx, end := e.traceAttempt(e.Context(ctx, call), d)
	_, err := d.CallIsolated(ctx, arguments)
	end(err)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("the handler %s did not answer in time: %w", d.ID, err)
	case err != nil || call.Patch.Empty():
		return err
	case d.Kind != handler.OnMutate:
		return fmt.Errorf("the handler %s changes the object, but is declared with OnValidate: declare it with OnMutate", d.ID)
	}
	changed, err := call.Patch.Applied(call.Body.Raw())
	if err == nil {
		e.review = e.review.With(object.NewBody(changed))
	}
	return err
}
