package kopf

import (
	"crypto/x509"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Admission has the arguments of an admission handler: the object under review, and the request.
// Use it only while the handler runs, and only in the handler's goroutine; the Patch can be shared.
//
// An error of the handler rejects the user's request and is shown to the user; see Reject. The
// context is canceled when the API server stops waiting. A handler is called once, possibly for
// a request that another webhook rejects afterwards. It must not have effects elsewhere
// unless it is declared with SideEffects, and never in a dry run.
//
// Diff is the difference from Old to New for the entire object, including its
// status and its system metadata. If the handler has a field, the difference is relative
// to it.
//
// Specification: Arguments, "Resource admission kwargs"; Admission control.
type Admission struct {
	reading
	writing
}

func admissionOf(c *handler.Call) *Admission { return &Admission{reading{c}, writing{c}} }

// Operation returns CREATE, UPDATE, DELETE, or CONNECT. Reason returns it as a reason of change
// handlers, for code shared with them; it is empty for a connection.
func (a *Admission) Operation() admissionv1.Operation { return a.reading.call.Review.Operation }

// Subresource returns the requested subresource, such as "status" or "scale", or "" for
// the object itself. The body of a subresource can have another kind, such as Scale.
func (a *Admission) Subresource() string { return a.reading.call.Review.Subresource }

// DryRun reports whether the request is a dry run, in which the handler must not have
// any effects.
func (a *Admission) DryRun() bool { return a.reading.call.Review.DryRun }

// OldBody returns the stored object, or nil for a creation.
func (a *Admission) OldBody() *object.Body { return a.reading.call.Review.Old }

// DecodeOld decodes the object as it is stored now into a pointer to a Go type. It returns false
// for a creation, and if the review is about something of another kind, as with the subresource
// "scale". If the stored object does not fit the type, it returns a MisfitError; a
// validation that returns that error rejects the request with 422, also if the request
// corrects the object.
func (a *Admission) DecodeOld(into any) (bool, error) {
	old := a.OldBody()
	if !isOfKind(a.reading.call, old) {
		return false, nil
	}
	return true, former(handler.DecodeObject(old.Raw(), into))
}

// UserInfo returns the user who has sent the request, as the API server has
// authenticated it.
//
// Specification: Arguments, "User information".
func (a *Admission) UserInfo() authenticationv1.UserInfo { return a.reading.call.Review.User }

// Headers returns the headers of the API server's HTTP request, including its
// credentials: do not log them. The handler can modify the result.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) Headers() http.Header {
	if a.reading.call.Review.Headers == nil {
		return http.Header{}
	}
	return a.reading.call.Review.Headers()
}

// TLSPeer returns the client certificate of the API server, not of the user. It returns
// nil if there was no certificate, or if the webhook server could not verify it. Do not
// modify the result.
//
// Specification: Arguments, "Request credentials".
func (a *Admission) TLSPeer() *x509.Certificate { return a.reading.call.Review.Peer }

// Warn shows a warning to the user, whether or not the request is admitted. Use less
// than 120 characters; Kubernetes truncates warnings longer than 256.
//
// Specification: Admission control, "Admission warnings".
func (a *Admission) Warn(message string) {
	if a.reading.call.Review.Warn != nil {
		a.reading.call.Review.Warn(message)
	}
}

// isOfKind reports whether a body of the review is an object of the resource, and not of a
// subresource.
func isOfKind(c *handler.Call, body *object.Body) bool {
	return body != nil && body.Kind() == c.Resource().Kind
}
