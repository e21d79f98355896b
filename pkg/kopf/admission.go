package kopf

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Admission is the arguments of a handler of admission reviews. Its methods are in
// package handler.
type Admission = handler.Admission

// AdmissionFunc is a handler of admission reviews.
type AdmissionFunc = handler.AdmissionFunc

// AdmissionError rejects the request of a user; see Reject.
type AdmissionError = handler.AdmissionError

// Reject makes an error for admission handlers that rejects the request of a user,
// with a text for the user, and a status of HTTP from 400 to 599. All other errors
// reject it too, with their text and 500.
//
// Specification: Admission control, "Admission errors".
func Reject(message string, code int) error { return handler.Reject(message, code) }

// OnValidate declares a handler that checks objects before they are stored. The API
// server asks it for every request that it is declared for; an error rejects the
// request, see Reject. The operator needs a server for that.
//
// Specification: Admission control, "Validation handlers".
func (r *Registry) OnValidate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	r.declared().Add(handler.Validate(sel, handler.Function{Admission: fn}, options...))
}

// OnMutate declares a handler that changes objects before they are stored, by
// Admission.Patch. Otherwise it is as OnValidate.
//
// Specification: Admission control, "Mutation handlers".
func (r *Registry) OnMutate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	r.declared().Add(handler.Mutate(sel, handler.Function{Admission: fn}, options...))
}

// OnValidate declares a handler that checks objects before they are stored, in the
// default registry; see Registry.OnValidate.
func OnValidate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	DefaultRegistry.OnValidate(sel, fn, options...)
}

// OnMutate declares a handler that changes objects before they are stored, in the
// default registry; see Registry.OnMutate.
func OnMutate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	DefaultRegistry.OnMutate(sel, fn, options...)
}

// AdmissionOf is an Admission of a typed object.
type AdmissionOf[T client.Object] struct {
	*Admission
	object, old T
}

// Object is the object as it is to be stored, or, if it is to be deleted, as it is.
// Changing it has no effect: use Update, or the Patch. It is nil where the review is
// about something of another kind, as with the subresources "scale" and "exec": the
// Body has that.
func (a *AdmissionOf[T]) Object() T { return a.object }

// OldObject is the object as it is stored now; nil for a creation.
func (a *AdmissionOf[T]) OldObject() T { return a.old }

// Update changes the object by a function, which gets the object as the earlier
// handlers have left it. Fields that the Go type does not know are kept.
func (a *AdmissionOf[T]) Update(change func(T) error) { update(a.Patch(), change) }

// OnValidate is Registry.OnValidate for the type.
func (t Typed[T]) OnValidate(fn func(context.Context, *AdmissionOf[T]) error, options ...AdmissionOption) {
	t.registry.handlers.Add(handler.Validate(Selector{}, admitting(fn), options...))
}

// OnMutate is Registry.OnMutate for the type.
func (t Typed[T]) OnMutate(fn func(context.Context, *AdmissionOf[T]) error, options ...AdmissionOption) {
	t.registry.handlers.Add(handler.Mutate(Selector{}, admitting(fn), options...))
}

// admitting wraps a typed handler of admission reviews.
func admitting[T client.Object](fn func(context.Context, *AdmissionOf[T]) error) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	call := func(ctx context.Context, a *Admission) error {
		typed := &AdmissionOf[T]{Admission: a}
		var err error
		if typed.object, err = reviewed[T](a, a.Body()); err != nil {
			return err
		}
		if typed.old, err = reviewed[T](a, a.OldBody()); err != nil {
			return err
		}
		return fn(ctx, typed)
	}
	return handler.Function{Admission: call, Origin: fn, Object: newOf[T]()}
}

// reviewed decodes one of the objects of a review. What a user has written need not
// fit the type: with a custom resource, the schema is checked only afterwards.
func reviewed[T client.Object](a *Admission, body *Body) (T, error) {
	if !isOfKind(a, body) {
		var none T
		return none, nil
	}
	typed, err := decode[T](body.Raw())
	if err != nil {
		return typed, Reject(err.Error(), unprocessable)
	}
	return typed, nil
}

// isOfKind reports whether a body of the review is an object of the resource, and not of a
// subresource.
func isOfKind(a *Admission, body *Body) bool { return body != nil && body.Kind() == a.Resource().Kind }

// unprocessable is the status with which the API server rejects what does not fit
// the schema of a resource.
const unprocessable = http.StatusUnprocessableEntity
