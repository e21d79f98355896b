package handler

import (
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

// reason is the operation as other handlers know it; empty for connections.
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

// Reviews are the reviews that a handler is for, and what the API server is to
// know of it.
//
// Specification: Admission control, "Handler options".
type Webhook struct {
	Operations     []admissionv1.Operation // none: all of them
	Subresource    string                  // empty: the object itself; "*": that, and all subresources
	Persistent     bool                    // the webhook stays when the operator exits
	SideEffects    bool                    // there are some, but for dry runs
	IgnoreFailures bool                    // what fails is admitted
}

// AnySubresource is a Subresource: the object itself, and all subresources.
const AnySubresource = "*"

// reviews tells whether the handler is for the review, whatever the object. A
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
