package handler

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// AdmissionFunc checks an object before the API server stores it, or changes it.
// An error rejects the request of the user, who gets its text; see AdmissionError.
// The context is cancelled when the API server does not wait any longer. A
// handler is called once, and possibly for a request that somebody else rejects
// afterwards: it must have no effects elsewhere, unless it is declared to have
// SideEffects, and none at all in a dry run.
//
// Specification: Admission control.
type AdmissionFunc func(ctx context.Context, a *Admission) error

// Admission is the arguments of an AdmissionFunc. It is valid while the handler
// runs, and for the handler's goroutine only; the Patch can be shared.
//
// Specification: Arguments, "Resource admission kwargs"; Admission control.
type Admission struct {
	writable
	review *Review
	field  object.Path
}

var _ Arguments = (*Admission)(nil)

// NewAdmission makes the arguments of one call of a handler.
func NewAdmission(s CallContext, d *Declaration, review *Review) *Admission {
	return &Admission{writable: newWritable(s, d.Param), review: review, field: d.Field}
}

// Name is the object's name; empty as long as it is to be generated.
func (a *Admission) Name() string { return cmp.Or(a.writable.Name(), a.review.Name) }

// Namespace is the object's namespace; empty for a cluster-scoped object.
func (a *Admission) Namespace() string { return cmp.Or(a.writable.Namespace(), a.review.Namespace) }

// Reason is the operation as handlers of changes know it: ReasonCreate, ReasonUpdate
// or ReasonDelete; empty for a connection. It is for what is shared with them.
func (a *Admission) Reason() cause.Reason { return a.review.changeReason() }

// Operation is CREATE, UPDATE, DELETE or CONNECT.
func (a *Admission) Operation() admissionv1.Operation { return a.review.Operation }

// Subresource is what of the object is asked for, such as "status" or "scale";
// empty: the object itself. The body can be of another kind then: a Scale, say.
func (a *Admission) Subresource() string { return a.review.Subresource }

// DryRun tells that nothing is going to be stored: the handler must not have any
// effect now.
func (a *Admission) DryRun() bool { return a.review.DryRun }

// Old is the object as it is stored now, all of it, or the handler's field in it;
// absent for a creation.
func (a *Admission) Old() object.Value { return a.valueOf(a.review.Old) }

// New is the object as it is to be stored, all of it, or the handler's field in
// it; absent for a deletion.
func (a *Admission) New() object.Value { return a.valueOf(a.review.New) }

func (a *Admission) valueOf(body *object.Body) object.Value {
	if body == nil {
		return object.Value{}
	}
	value, _ := object.Lookup(body.Raw(), a.field)
	return object.NewValue(value)
}

// Diff is the difference from Old to New, of the whole object: also of its status,
// and of what the system keeps in the metadata. It is relative to the field, if
// there is one.
func (a *Admission) Diff() diff.Diff { return a.review.diff().Reduce(a.field) }

// OldBody is the object as it is stored now; nil for a creation.
func (a *Admission) OldBody() *object.Body { return a.review.Old }

// UserInfo is who has sent the request to the API server, as that has found out.
//
// Specification: Arguments, "User information".
func (a *Admission) UserInfo() authenticationv1.UserInfo { return a.review.User }

// Headers are those of the HTTP request of the API server, its credentials
// included. They belong to the handler, and had better not get into a log.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) Headers() http.Header {
	if a.review.Headers == nil {
		return http.Header{}
	}
	return a.review.Headers()
}

// TLSPeer is the client certificate of the API server, not of the user; nil if it
// has presented none, or none that the webhook server could verify: anybody can make
// one of those. Read only.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) TLSPeer() *x509.Certificate { return a.review.Peer }

// Warn says something to the user, whether or not the request is admitted. Keep it
// below 120 characters; Kubernetes cuts what is longer than 256.
//
// Specification: Admission control, "Admission warnings".
func (a *Admission) Warn(message string) {
	if a.review.Warn != nil {
		a.review.Warn(message)
	}
}

// Review is one question of the API server: whether an object may be stored as it
// is. The webhook fills it; nobody changes it afterwards.
type Review struct {
	Operation   admissionv1.Operation
	Subresource string // empty: the object itself
	DryRun      bool
	User        authenticationv1.UserInfo
	Old, New    *object.Body // nil: there is none
	// Name and Namespace are those of the request: what is posted to a subresource
	// such as pods/exec has none itself.
	Name, Namespace string
	// Headers are those of the HTTP request, a new copy at every call; nil: there was
	// no such request.
	Headers func() http.Header
	Peer    *x509.Certificate // nil: none that could be verified
	// Warn takes warnings for the user; nil: nobody does.
	Warn func(message string)

	once       sync.Once
	difference diff.Diff
}

// Body is the object under review: as it is to be, or as it is if it is to be
// deleted. It is empty for what has no body.
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

// With is the review after the object was changed.
func (r *Review) With(changed *object.Body) *Review {
	next := &Review{
		Operation: r.Operation, Subresource: r.Subresource, DryRun: r.DryRun, User: r.User,
		Old: r.Old, New: changed, Name: r.Name, Namespace: r.Namespace,
		Headers: r.Headers, Peer: r.Peer, Warn: r.Warn,
	}
	if r.New == nil {
		next.Old, next.New = changed, nil
	}
	return next
}

// diff is computed when the first handler asks: most only look at the object.
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

// changeReason is the operation as other handlers know it; empty for connections.
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

// Webhook is what the API server must know of an admission handler: which reviews it
// is for, among others.
//
// Specification: Admission control, "Handler options".
type Webhook struct {
	Operations     []admissionv1.Operation // none: all of them
	Subresource    string                  // empty: the object itself; "*": that, and all subresources
	Persistent     bool                    // the webhook stays when the operator exits
	SideEffects    bool                    // there are some, but for dry runs
	IgnoreFailures bool                    // requests are admitted while the operator cannot be reached
}

// AnySubresource is a Subresource: the object itself, and all subresources.
const AnySubresource = "*"

// matchReview reports whether the handler is for the review, whatever the object. A
// deletion has nothing to be changed: mutations are left out, unless they have
// asked for it.
func (d *Declaration) matchReview(r *Review) bool {
	if r == nil || d.Webhook.Subresource != AnySubresource && d.Webhook.Subresource != r.Subresource {
		return false
	}
	if len(d.Webhook.Operations) == 0 {
		return d.Kind != OnMutate || r.Operation != admissionv1.Delete
	}
	return slices.Contains(d.Webhook.Operations, r.Operation)
}
