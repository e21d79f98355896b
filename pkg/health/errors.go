package health

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// describeError describes the kind of an API error. The message of the error may quote
// the request, and any client that reaches the port can read the response.
func describeError(err error) string {
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		return "the operator is not permitted to list and watch it"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the operator's credentials"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "the API server does not serve it"
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return "the API server is overloaded or unavailable"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "the API server cannot be reached"
	default:
		return "see the log for the reason"
	}
}
