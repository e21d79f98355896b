package login

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Error means that the operator is not logged in: the login handlers have failed, or the
// API server accepts none of their credentials. For apierrors.IsUnauthorized it is a 401.
//
// Specification: LoginError.
type Error struct {
	// Next is the earliest time of the next login. It takes place if there is a request.
	Next time.Time

	cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("the operator is not logged in to the cluster: %v", e.cause)
}

// Unwrap returns the reason, such as the errors of the login handlers.
func (e *Error) Unwrap() error { return e.cause }

// Status implements apierrors.APIStatus.
func (e *Error) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnauthorized,
		Reason: metav1.StatusReasonUnauthorized, Message: e.Error(),
	}
}
