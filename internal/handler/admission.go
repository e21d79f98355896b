package handler

import (
	"crypto/x509"
	"maps"
	"net/http"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Review is a request of the API server to review an object. The webhook fills it. Do
// not modify it afterwards.
type Review struct {
	Operation   admissionv1.Operation
	Subresource string // empty for the object itself
	DryRun      bool
	User        authenticationv1.UserInfo
	Old, New    *object.Body // nil if there is none
	// Name and Namespace come from the request, because bodies of subresources such as
	// pods/exec have none.
	Name, Namespace string
	// Headers returns a new copy of the HTTP headers. Nil means that there was no HTTP
	// request.
	Headers func() http.Header
	Peer    *x509.Certificate // nil if it was not verified
	// Warn shows a warning to the user. Nil discards warnings.
	Warn func(message string)

	once       sync.Once
	difference diff.Diff
}

// Body returns the object under review: the new one, or the old one for a deletion. It
// is empty if the request has no body.
func (r *Review) Body() *object.Body {
	switch {
	case r.New != nil:
		return r.New
	case r.Old != nil:
		return r.Old
	default:
		return object.NewBody(map[string]any{})
	}
}

// ChangesOnlyMetadata reports whether the review is of an update that leaves everything but
// the metadata of the stored object as it is.
func (r *Review) ChangesOnlyMetadata() bool {
	return r.Old != nil && r.New != nil && object.Equal(withoutMetadata(r.Old), withoutMetadata(r.New))
}

func withoutMetadata(body *object.Body) map[string]any {
	content := maps.Clone(body.Raw())
	delete(content, "metadata")
	return content
}

// With returns the review with the changed object.
func (r *Review) With(changed *object.Body) *Review {
	next := &Review{
		Operation: r.Operation, Subresource: r.Subresource, DryRun: r.DryRun, User: r.User,
		Old: r.Old, New: changed, Name: r.Name, Namespace: r.Namespace,
		Headers: r.Headers, Peer: r.Peer, Warn: r.Warn,
	}
	if r.New == nil {
		next.Old = changed
		next.New = nil
	}
	return next
}

// transition returns what the request changes in the object, or in the field of a handler.
func (r *Review) transition(field object.Path) Transition {
	// The difference is computed on first use, because most handlers need only the object.
	r.once.Do(func() { r.difference = diff.Compute(rawBody(r.Old), rawBody(r.New), diff.Full) })
	return Transition{Reason: r.changeReason(), Old: valueOf(r.Old, field), New: valueOf(r.New, field), Diff: r.difference.Reduce(field)}
}

func valueOf(body *object.Body, field object.Path) object.Value {
	if body == nil {
		return object.Value{}
	}
	value, _ := object.Lookup(body.Raw(), field)
	return object.NewValue(value)
}

func rawBody(body *object.Body) any {
	if body == nil {
		return nil
	}
	return body.Raw()
}

// changeReason returns the operation as a reason of change handlers, or "" for
// connections.
func (r *Review) changeReason() cause.Reason {
	switch r.Operation {
	case admissionv1.Create:
		return cause.Create
	case admissionv1.Update:
		return cause.Update
	case admissionv1.Delete:
		return cause.Delete
	default:
		return ""
	}
}

// Webhook contains the properties of an admission handler that the API server needs,
// such as the reviews that it is for.
//
// Specification: Admission control, "Handler options".
type Webhook struct {
	Operations     []admissionv1.Operation // empty for all operations
	Subresource    string                  // empty for the object itself; "*" includes all subresources
	Persistent     bool                    // the webhook stays when the operator exits
	SideEffects    bool                    // the handler has side effects, except in dry runs
	IgnoreFailures bool                    // requests are admitted while the operator is unreachable
}

// AnySubresource is a Subresource that selects the object itself and all its
// subresources.
const AnySubresource = "*"

// matchReview reports whether the handler is for the review, whatever the object.
// Mutating handlers are not called for deletions by default, because there is nothing to
// change.
func (d *Declaration) matchReview(r *Review) bool {
	if r == nil || d.Webhook.Subresource != AnySubresource && d.Webhook.Subresource != r.Subresource {
		return false
	}
	if len(d.Webhook.Operations) == 0 {
		return d.Kind != OnMutate || r.Operation != admissionv1.Delete
	}
	return slices.Contains(d.Webhook.Operations, r.Operation)
}
