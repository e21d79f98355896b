package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/registry"
)

// evaluation is the work on one review. It is for one goroutine, but for the warnings.
type evaluation struct {
	*webhook
	request  *admissionRequest
	review   *handler.Review // as the mutations have left it
	called   registry.Handlers
	warnings warnings
	errors   []error
	log      logr.Logger
}

// evaluate calls the handlers that are for the review, mutations first.
func (w *webhook) evaluate(ctx context.Context, asked *admissionRequest, handlers registry.Handlers) *evaluation {
	c := &evaluation{webhook: w, request: asked, review: asked.Review, log: w.Logger.WithValues(
		"object", objectReference{asked}, "resource", asked.resource.String(), "operation", asked.Operation)}
	asked.Warn = c.warnings.add
	for _, kind := range []handler.Kind{handler.OnMutate, handler.OnValidate} {
		for _, d := range handlers {
			if d.Kind == kind && d.Selector.Match(asked.resource) {
				c.callIfSelected(ctx, d)
			}
		}
	}
	return c
}

// callIfSelected calls the handler, if it is for the object as it is by now. A handler
// that is declared several times is called once.
func (e *evaluation) callIfSelected(ctx context.Context, d *handler.Declaration) {
	if slices.ContainsFunc(e.called, d.IsSame) {
		return
	}
	subject := e.subjectFor(d)
	selected := false
	err := handler.WithRecover(func() error {
		selected = d.Selects(&handler.Cause{CallContext: subject, Review: e.review})
		return nil
	})
	if err == nil && !selected {
		return
	}
	e.called = append(e.called, d)
	if err == nil {
		err = e.callHandler(ctx, d, subject)
	}
	e.recordOutcome(d, subject.Logger, err)
}

// subjectFor is the object as the earlier mutations have left it.
func (e *evaluation) subjectFor(d *handler.Declaration) handler.CallContext {
	body := e.review.Body()
	s := handler.CallContext{
		Body: body, Patch: &patch.Patch{}, Resource: &e.request.resource,
		Logger: e.log.WithValues("handler", d.ID), Client: e.Client,
	}
	if e.Memo != nil {
		s.Memo = func() *memo.Values { return e.Memo(e.request.resource, e.memoName(body), e.memoUID(body)) }
	}
	return s
}

func (e *evaluation) memoName(body *object.Body) types.NamespacedName {
	return types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}
}

// memoUID is empty for an object that is not there yet: the one that the API server
// has chosen comes to nothing if somebody rejects the creation.
func (e *evaluation) memoUID(body *object.Body) types.UID {
	if e.request.Operation == admissionv1.Create {
		return ""
	}
	return body.UID()
}

// callHandler calls the handler, and takes its patch.
func (e *evaluation) callHandler(ctx context.Context, d *handler.Declaration, s handler.CallContext) error {
	if ctx.Err() != nil {
		return fmt.Errorf("there was no time left to call the handler %s", d.ID)
	}
	about := About{Body: func() *object.Body { return s.Body }, Resource: *s.Resource, Logger: s.Logger}
	err := d.CallAdmission(e.Context(ctx, about), handler.NewAdmission(s, d, e.review))
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("the handler %s has not answered in time: %w", d.ID, err)
	case err != nil || s.Patch.Empty():
		return err
	case d.Kind != handler.OnMutate:
		return fmt.Errorf("the handler %s changes the object, but it is declared by OnValidate: declare it by OnMutate", d.ID)
	}
	changed, err := s.Patch.Applied(s.Body.Raw())
	if err == nil {
		e.review = e.review.With(object.NewBody(changed))
	}
	return err
}
