package health

import (
	"context"
	"errors"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// describeError says what kind of an error of the API it is. Its own words may quote
// what was sent, and this is read by whoever reaches the port.
func describeError(err error) string {
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		return "the operator is not permitted to list and watch it"
	case apierrors.IsUnauthorized(err):
		return "the API server does not accept the operator's credentials"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "the API server does not have it"
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return "the API server is overloaded or not available"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return "the API server cannot be reached"
	default:
		return "the log tells why"
	}
}
