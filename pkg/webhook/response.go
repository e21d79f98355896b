package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// response returns the review with the response to its request.
func (e *evaluation) response() *admissionv1.AdmissionReview {
	response := &admissionv1.AdmissionResponse{UID: e.request.uid}
	var operations []byte
	var err error
	if len(e.errors) > 0 { // the user gets only one: Specification: Admission control, "Admission errors"
		err = slices.MinFunc(e.errors, func(a, b error) int { return errorPriority(a) - errorPriority(b) })
	} else {
		operations, err = e.patchOperations()
	}
	switch {
	case err != nil:
		response.Result = &metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: int32(handler.HTTPStatus(err))} //nolint:gosec // three digits
	case operations != nil:
		response.Allowed = true
		response.Patch = operations
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	default:
		response.Allowed = true
	}
	response.Warnings = e.warnings.all()
	return &admissionv1.AdmissionReview{TypeMeta: e.request.version, Response: response}
}

// patchOperations returns the changes of the mutating handlers as a JSON patch, or nil
// if there are none.
func (e *evaluation) patchOperations() ([]byte, error) {
	if e.review == e.request.Review {
		return nil, nil // no handler has changed anything
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
