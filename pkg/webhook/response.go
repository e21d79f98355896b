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
func (q *question) response(c *call) *admissionv1.AdmissionReview {
	answer := &admissionv1.AdmissionResponse{UID: q.uid}
	status := func(err error) *metav1.Status {
		return &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: int32(handler.StatusOf(err))} //nolint:gosec // three digits
	}
	if err := c.chosen(); err != nil {
		answer.Result = status(err)
	} else if operations, err := c.operations(); err != nil {
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

// operations are what the mutations have changed; nil: nothing.
func (c *call) operations() ([]byte, error) {
	if c.review == c.asked.Review {
		return nil, nil // no mutation has said anything
	}
	operations, err := patch.Operations(c.asked.Body().Raw(), c.review.Body().Raw())
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
