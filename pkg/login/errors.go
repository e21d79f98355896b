package login

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error means that the operator is not logged in: the login handlers have failed,
// or have returned nothing that the API server accepts. To apierrors.IsUnauthorized
// it is the 401 that it stands for.
//
// Specification: LoginError.
type Error struct {
	// Next is when the handlers are called again at the earliest, by a request.
	Next time.Time

	cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("the operator is not logged in to the cluster: %v", e.cause)
}

// Unwrap returns what the login handlers have failed with, if they have.
func (e *Error) Unwrap() error { return e.cause }

// Status makes it one of the errors that the API server answers.
func (e *Error) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnauthorized,
		Reason: metav1.StatusReasonUnauthorized, Message: e.Error(),
	}
}
