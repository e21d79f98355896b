package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// errListed means that an object exists although a response said that it does not.
var errListed = errors.New("the API server responds that the object does not exist, but lists it")

// confirmGone marks the object as gone if a response 404 is true. Otherwise, it returns an
// error, and the object is tried again later: a proxy can respond with an HTML page, and
// an object that counts as gone is not handled anymore.
func (s *Session) confirmGone(ctx context.Context, notFound error) error {
	if !namesObject(notFound, s.target.Key.Name) {
		return fmt.Errorf("the response 404 does not come from the API server or is not about the object: %w", notFound)
	}
	uid, listed, err := s.target.API.Find(ctx, s.target.Key.NamespacedName)
	switch {
	case err != nil:
		return fmt.Errorf("the API server responds that the object does not exist, and a list cannot confirm that: %w", errors.Join(notFound, err))
	case uid != "" && (s.state.uid == "" || uid == s.state.uid):
		return fmt.Errorf("%w: %w", errListed, notFound)
	}
	s.checkHistory(listed)
	s.state.markGoneAt(listed)
	return nil
}

// isDeleted reports whether the API server has deleted an object, according to the response to
// the removal of its last finalizer, and not only released it for the end of its grace period.
// Versions of it that are later than this response can still
// follow: the API server does not compare versions again when it deletes the object, so writes
// of others can come in between.
func isDeleted(body *object.Body) bool {
	grace, _ := object.Lookup(body.Raw(), object.Path{"metadata", "deletionGracePeriodSeconds"})
	return grace == nil || object.Equal(grace, int64(0))
}

// namesObject reports whether an error is a Status of the API server about this object.
func namesObject(err error, name string) bool {
	var status apierrors.APIStatus
	if !isStatusOfServer(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name
}

// isStatusOfServer reports whether an error is a Status of the API server. The client turns
// other responses, such as the page of a proxy, into errors with a special cause.
func isStatusOfServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
