package handler

import (
	"cmp"
	"context"
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

// AdmissionFunc checks or changes an object before the API server stores it. An error
// rejects the user's request and is shown to the user; see AdmissionError. The context
// is canceled when the API server stops waiting. A handler is called once, possibly for
// a request that another webhook rejects afterwards. It must not have effects elsewhere
// unless it is declared with SideEffects, and never in a dry run.
//
// Specification: Admission control.
type AdmissionFunc func(ctx context.Context, a *Admission) error

// Admission contains the arguments of an AdmissionFunc. Use it only while the handler
// runs, and only in the handler's goroutine; the Patch can be shared.
//
// Specification: Arguments, "Resource admission kwargs"; Admission control.
type Admission struct {
	writable
	review *Review
	field  object.Path
}

var _ Arguments = (*Admission)(nil)

// NewAdmission returns the arguments of one call of a handler.
func NewAdmission(s CallContext, d *Declaration, review *Review) *Admission {
	return &Admission{writable: newWritable(s, d.Param), review: review, field: d.Field}
}

// Name returns the object's name, which is empty until a generated name is known.
func (a *Admission) Name() string { return cmp.Or(a.writable.Name(), a.review.Name) }

// Namespace returns the object's namespace, which is empty for a cluster-scoped object.
func (a *Admission) Namespace() string { return cmp.Or(a.writable.Namespace(), a.review.Namespace) }

// Reason returns the operation as a reason of change handlers: ReasonCreate,
// ReasonUpdate, or ReasonDelete, or "" for a connection. Use it for code shared with
// change handlers.
func (a *Admission) Reason() cause.Reason { return a.review.changeReason() }

// Operation returns CREATE, UPDATE, DELETE, or CONNECT.
func (a *Admission) Operation() admissionv1.Operation { return a.review.Operation }

// Subresource returns the requested subresource, such as "status" or "scale", or "" for
// the object itself. The body of a subresource can have another kind, such as Scale.
func (a *Admission) Subresource() string { return a.review.Subresource }

// DryRun reports whether the request is a dry run, in which the handler must not have
// any effects.
func (a *Admission) DryRun() bool { return a.review.DryRun }

// Old returns the stored object, or the handler's field in it. It is absent for a
// creation.
func (a *Admission) Old() object.Value { return a.valueOf(a.review.Old) }

// New returns the object to be stored, or the handler's field in it. It is absent for a
// deletion.
func (a *Admission) New() object.Value { return a.valueOf(a.review.New) }

func (a *Admission) valueOf(body *object.Body) object.Value {
	if body == nil {
		return object.Value{}
	}
	value, _ := object.Lookup(body.Raw(), a.field)
	return object.NewValue(value)
}

// Diff returns the difference from Old to New for the entire object, including its
// status and its system metadata. If the handler has a field, the difference is relative
// to it.
func (a *Admission) Diff() diff.Diff { return a.review.diff().Reduce(a.field) }

// OldBody returns the stored object, or nil for a creation.
func (a *Admission) OldBody() *object.Body { return a.review.Old }

// UserInfo returns the user who has sent the request, as the API server has
// authenticated it.
//
// Specification: Arguments, "User information".
func (a *Admission) UserInfo() authenticationv1.UserInfo { return a.review.User }

// Headers returns the headers of the API server's HTTP request, including its
// credentials: do not log them. The handler can modify the result.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) Headers() http.Header {
	if a.review.Headers == nil {
		return http.Header{}
	}
	return a.review.Headers()
}

// TLSPeer returns the client certificate of the API server, not of the user. It returns
// nil if there was no certificate, or if the webhook server could not verify it. Do not
// modify the result.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) TLSPeer() *x509.Certificate { return a.review.Peer }

// Warn shows a warning to the user, whether or not the request is admitted. Use less
// than 120 characters; Kubernetes truncates warnings longer than 256.
//
// Specification: Admission control, "Admission warnings".
func (a *Admission) Warn(message string) {
	if a.review.Warn != nil {
		a.review.Warn(message)
	}
}

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

// diff is computed on first use, because most handlers need only the object.
func (r *Review) diff() diff.Diff {
	r.once.Do(func() { r.difference = diff.Compute(rawBody(r.Old), rawBody(r.New), diff.Full) })
	return r.difference
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
