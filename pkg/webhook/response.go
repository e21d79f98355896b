package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// response is the answer to a review.
func (q *admissionRequest) response(c *evaluation) *admissionv1.AdmissionReview {
	answer := &admissionv1.AdmissionResponse{UID: q.uid}
	status := func(err error) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: int32(handler.HTTPStatus(err))} //nolint:gosec // three digits
	}
	if err := c.preferredError(); err != nil {
		answer.Result = status(err)
	} else if operations, err := c.patchOperations(); err != nil {
		answer.Result = status(err)
	} else {
		answer.Allowed = true
		if operations != nil {
			answer.Patch, answer.PatchType = operations, ptr.To(admissionv1.PatchTypeJSONPatch)
		}
	}
	answer.Warnings = c.warnings.all()
	return &admissionv1.AdmissionReview{TypeMeta: q.version, Response: answer}
}

// patchOperations are what the mutations have changed; nil: nothing.
func (e *evaluation) patchOperations() ([]byte, error) {
	if e.review == e.request.Review {
		return nil, nil // no mutation has said anything
	}
	operations, err := patch.Operations(e.request.Body().Raw(), e.review.Body().Raw())
	if err != nil || len(operations) == 0 {
		return nil, err
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("the changes cannot be encoded: %w", err)
	}
	return text, nil
}

var _ http.Handler = (*webhook)(nil)
