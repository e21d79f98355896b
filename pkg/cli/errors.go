package cli

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/login"
)

// advisedError is an error with a remedy.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string { return e.error.Error() + "; " + e.advice }
func (e *advisedError) Unwrap() error { return e.error }

// withAdvice adds a remedy to known errors, once. It adds none for connection errors, which
// connect explains: here, they can be about another server that a handler has called.
func withAdvice(err error) error {
	var failed *login.Error
	var advised *advisedError
	switch {
	case errors.As(err, &advised), errors.As(err, &failed): // login errors explain what the login handlers did
		return err
	case apierrors.IsUnauthorized(err):
		return &advisedError{err, "the API server rejects the credentials: log in again, or correct the kubeconfig"}
	case apierrors.IsForbidden(err):
		return &advisedError{err, "grant the permission to this user in a role"}
	default:
		return err
	}
}
