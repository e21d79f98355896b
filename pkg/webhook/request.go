package webhook

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// admissionRequest is the request of one review, decoded.
type admissionRequest struct {
	*handler.Review
	version  metav1.TypeMeta // the response has the same
	uid      types.UID
	resource selector.Resource
}

// decode decodes a review. Its errors are written for the sender of the review.
func (w *webhook) decode(body []byte, in *http.Request) (*admissionRequest, error) {
	var sent admissionv1.AdmissionReview
	if err := json.UnmarshalCaseSensitivePreserveInts(body, &sent); err != nil {
		return nil, newHTTPError(http.StatusBadRequest, "the body is not an AdmissionReview as JSON: %w", err)
	}
	request := sent.Request
	switch group := sent.GroupVersionKind().Group; {
	case sent.Kind != "AdmissionReview" || group != admissionv1.GroupName:
		return nil, newHTTPError(http.StatusBadRequest, "an AdmissionReview of %s is expected, not %q of %q",
			admissionv1.SchemeGroupVersion, sent.Kind, sent.APIVersion)
	case request == nil:
		return nil, newHTTPError(http.StatusBadRequest, "the review has no request")
	case request.UID == "":
		return nil, newHTTPError(http.StatusBadRequest, "the request has no uid")
	case request.Resource.Resource == "" || request.Resource.Version == "":
		return nil, newHTTPError(http.StatusBadRequest, "the request does not name the resource of the object")
	}
	gvr := schema.GroupVersionResource(request.Resource)
	resource, found := w.Resources(gvr)
	if !found {
		return nil, newHTTPError(http.StatusNotFound, "the operator does not know the resource %s yet: if it exists, try again later", gvr)
	}
	review, err := newReview(request)
	if err != nil {
		return nil, err
	}
	review.Headers = func() http.Header {
		headers := in.Header.Clone()
		headers.Set("Host", in.Host) // Go keeps it apart
		return headers
	}
	if in.TLS != nil && len(in.TLS.VerifiedChains) > 0 {
		review.Peer = in.TLS.PeerCertificates[0]
	}
	return &admissionRequest{Review: review, version: sent.TypeMeta, uid: request.UID, resource: resource}, nil
}

// newReview returns the request as the handlers see it.
func newReview(request *admissionv1.AdmissionRequest) (*handler.Review, error) {
	before, err := parseBody("oldObject", request.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	after, err := parseBody("object", request.Object.Raw)
	if err != nil {
		return nil, err
	}
	switch request.Operation {
	case admissionv1.Create, admissionv1.Update, admissionv1.Delete:
		if before == nil && after == nil {
			return nil, newHTTPError(http.StatusBadRequest, "the request has neither an object nor an oldObject")
		}
	case admissionv1.Connect: // some subresources have no options to send
	default:
		return nil, newHTTPError(http.StatusBadRequest, "the operation %q does not exist", request.Operation)
	}
	return &handler.Review{
		Operation: request.Operation, Subresource: request.SubResource, DryRun: request.DryRun != nil && *request.DryRun,
		User: request.UserInfo, Old: before, New: after, Name: request.Name, Namespace: request.Namespace,
	}, nil
}

// parseBody parses one of the objects of a request; it returns nil for a missing one.
func parseBody(field string, text []byte) (*object.Body, error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // most requests have only one of the two
	}
	snapshot, err := object.ParseSnapshot(text)
	if err != nil {
		return nil, newHTTPError(http.StatusBadRequest, "the %s of the request: %w", field, err)
	}
	return snapshot.Body(), nil
}
