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

// call is the work on one review. It is for one goroutine, but for the warnings.
type call struct {
	*webhook
	asked    *question
	review   *handler.Review // as the mutations have left it
	called   registry.Handlers
	warnings warnings
	errors   []error
	log      logr.Logger
}

// admit calls the handlers that are for the review, mutations first.
func (w *webhook) admit(ctx context.Context, asked *question, handlers registry.Handlers) *call {
	c := &call{webhook: w, asked: asked, review: asked.Review, log: w.Logger.WithValues(
		"object", mention{asked}, "resource", asked.resource.String(), "operation", asked.Operation)}
	asked.Warn = c.warnings.add
	for _, kind := range []handler.Kind{handler.OnMutate, handler.OnValidate} {
		for _, d := range handlers {
			if d.Kind == kind && d.Selector.Match(asked.resource) {
				c.consider(ctx, d)
			}
		}
	}
	return c
}

// consider calls the handler, if it is for the object as it is by now. A handler
// that is declared several times is called once.
func (c *call) consider(ctx context.Context, d *handler.Declaration) {
	if slices.ContainsFunc(c.called, d.Same) {
		return
	}
	subject := c.subject(d)
	selected := false
	err := handler.Guarded(func() error {
		selected = d.Selects(&handler.Occasion{Subject: subject, Review: c.review})
		return nil
	})
	if err == nil && !selected {
		return
	}
	c.called = append(c.called, d)
	if err == nil {
		err = c.run(ctx, d, subject)
	}
	c.report(d, subject.Logger, err)
}

// subject is the object as the earlier mutations have left it.
func (c *call) subject(d *handler.Declaration) handler.Subject {
	body := c.review.Body()
	s := handler.Subject{
		Body: body, Patch: &patch.Patch{}, Resource: &c.asked.resource,
		Logger: c.log.WithValues("handler", d.ID), Client: c.Client,
	}
	if c.Memo != nil {
		s.Memo = func() *memo.Values { return c.Memo(c.asked.resource, c.nameOf(body), c.uidOf(body)) }
	}
	return s
}

func (c *call) nameOf(body *object.Body) types.NamespacedName {
	return types.NamespacedName{Namespace: body.Namespace(), Name: body.Name()}
}

// uidOf is empty for an object that is not there yet: the one that the API server
// has chosen comes to nothing if somebody rejects the creation.
func (c *call) uidOf(body *object.Body) types.UID {
	if c.asked.Operation == admissionv1.Create {
		return ""
	}
	return body.UID()
}

// run calls the handler, and takes its patch.
func (c *call) run(ctx context.Context, d *handler.Declaration, s handler.Subject) error {
	if ctx.Err() != nil {
		return fmt.Errorf("there was no time left to call the handler %s", d.ID)
	}
	about := About{Body: func() *object.Body { return s.Body }, Resource: *s.Resource, Logger: s.Logger}
	err := d.CallAdmission(c.Context(ctx, about), handler.NewAdmission(s, d, c.review))
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
		c.review = c.review.With(object.NewBody(changed))
	}
	return err
}
