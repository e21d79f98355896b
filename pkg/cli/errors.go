package cli

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/login"
)

// withAdvice adds a remedy to known errors. It adds none for connection errors, which
// connect explains: here, they can be about another server that a handler has called.
func withAdvice(err error) error {
	var failed *login.Error
	switch {
	case errors.As(err, &failed): // explains what the login handlers did
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the API server rejects the credentials: log in again, or correct the kubeconfig", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; grant the permission to this user in a role", err)
	default:
		return err
	}
}
