package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
)

// Admission has the arguments of an AdmissionFunc. Its methods are those of
// [handler.Admission]: Operation, Subresource, OldBody, UserInfo, DryRun, Headers, TLSPeer,
// Warn, and as for Change.
//
//	go doc github.com/kopf-go/kopf/pkg/model/handler.Admission
type Admission = handler.Admission

// AdmissionFunc is a handler of admission reviews.
type AdmissionFunc = handler.AdmissionFunc

// AdmissionError rejects the request of a user; see Reject.
type AdmissionError = handler.AdmissionError

// Reject returns an error for admission handlers that rejects a request, with a message for
// the user and an HTTP status from 400 to 599. Any other error also rejects the request,
// with its text and the status 500.
//
// Specification: Admission control, "Admission errors".
func Reject(message string, code int) error { return handler.Reject(message, code) }

// HasAdmission reports whether admission handlers are declared. An operator with such
// handlers needs a server for the reviews of the API server: Settings.Admission.Server.
func (r *Registry) HasAdmission() bool { return r.declared().HasAdmission() }

// OnValidate declares a handler that checks objects before the API server stores them. An
// error rejects the request, see Reject. The operator needs a server for its API servers to
// call: Settings.Admission.Server.
//
// Specification: Admission control, "Validation handlers".
func (r *Registry) OnValidate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	r.declared().Add(handler.Validate(sel, handler.Function{Admission: fn}, options...))
}

// OnMutate declares a handler that changes objects before the API server stores them, with
// Admission.Patch. Otherwise, it is like OnValidate.
//
// Specification: Admission control, "Mutation handlers".
func (r *Registry) OnMutate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	r.declared().Add(handler.Mutate(sel, handler.Function{Admission: fn}, options...))
}

// OnValidate declares a handler that checks objects before the API server stores them, in
// DefaultRegistry. See Registry.OnValidate.
func OnValidate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	DefaultRegistry.OnValidate(sel, fn, options...)
}

// OnMutate declares a handler that changes objects before the API server stores them, in
// DefaultRegistry. See Registry.OnMutate.
func OnMutate(sel Selector, fn AdmissionFunc, options ...AdmissionOption) {
	DefaultRegistry.OnMutate(sel, fn, options...)
}

// AdmissionOf is an Admission of a typed object.
type AdmissionOf[T client.Object] struct {
	*Admission
	object T
}

// Bind sets the arguments, and decodes the object. See ChangeOf.Bind.
func (a *AdmissionOf[T]) Bind(to *Admission) (err error) {
	a.Admission = to
	a.object, err = reviewed[T](to, to.Body())
	return err
}

// Object returns the object that the API server will store, or, for a deletion, the object
// that it will delete. Changing it has no effect: use Update, or the Patch. It returns nil
// if the review is about something of another kind, as with the subresources "scale" and
// "exec"; see Body. If the object does not fit the type, the handler is not called: a
// validation rejects the request with 422, and a mutation passes it on unchanged, because
// the API server checks the schema of custom resources after the mutations.
func (a *AdmissionOf[T]) Object() T { return a.object }

// OldObject returns the object as it is stored now, decoded at every call. It returns nil for
// a creation. If the stored object does not fit the type, it returns a MisfitError; a
// validation that returns that error rejects the request with 422, also if the request
// corrects the object.
func (a *AdmissionOf[T]) OldObject() (T, error) {
	old, err := reviewed[T](a.Admission, a.OldBody())
	return old, former(err)
}

// Update changes the object with a function, which is called with the result of the earlier
// handlers. Fields that the Go type does not know stay on the object.
func (a *AdmissionOf[T]) Update(change func(T) error) { update(a.Patch(), change) }

// OnValidate is Registry.OnValidate for the type.
func (t Typed[T]) OnValidate(fn func(context.Context, *AdmissionOf[T]) error, options ...AdmissionOption) {
	t.registry.declared().Add(handler.Validate(Selector{}, admitting(fn), options...))
}

// OnMutate is Registry.OnMutate for the type.
func (t Typed[T]) OnMutate(fn func(context.Context, *AdmissionOf[T]) error, options ...AdmissionOption) {
	t.registry.declared().Add(handler.Mutate(Selector{}, admitting(fn), options...))
}

// admitting wraps a typed handler of admission reviews.
func admitting[T client.Object](fn func(context.Context, *AdmissionOf[T]) error) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	call := func(ctx context.Context, a *Admission) error {
		typed := &AdmissionOf[T]{}
		if err := typed.Bind(a); err != nil {
			return err
		}
		return fn(ctx, typed)
	}
	return handler.Function{Admission: call, Origin: fn, Object: newOf[T]()}
}

// reviewed decodes one of the objects of a review.
func reviewed[T client.Object](a *Admission, body *Body) (T, error) {
	if !isOfKind(a, body) {
		var none T
		return none, nil
	}
	return decode[T](body.Raw())
}

// isOfKind reports whether a body of the review is an object of the resource, and not of a
// subresource.
func isOfKind(a *Admission, body *Body) bool { return body != nil && body.Kind() == a.Resource().Kind }
