package cli

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/login"
)

// withAdvice adds what to do about an error, where that is known. The connection to
// the cluster explains its own errors: what looks like one of them can be about
// something else that a handler has called.
func withAdvice(err error) error {
	var vault *login.Error
	switch {
	case errors.As(err, &vault): // says what the login handlers have to do with it
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w; the credentials are not accepted: log in again, or correct the kubeconfig", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; a role must allow it to this user", err)
	default:
		return err
	}
}
