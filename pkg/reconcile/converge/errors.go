package converge

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeRefusal returns the error of the server with all fields that it names.
func describeRefusal(err error) error {
	var fields []string
	for _, cause := range causesOf(err) {
		if cause.Field != "" && !strings.Contains(err.Error(), cause.Field) {
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	if len(fields) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(fields, "; "))
}

// causesOf returns the causes of a refusal.
func causesOf(refusal error) []metav1.StatusCause {
	var answer apierrors.APIStatus
	if !errors.As(refusal, &answer) || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}

// isRefused reports whether the API server says that it has not executed a request. Without an answer, and after
// an answer about a failure of the server, that is not known.
func isRefused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code >= http.StatusBadRequest && answer.Status().Code < http.StatusInternalServerError
}

// isRefusedByValidation reports whether the validation of the API server has refused a change
// because of fields. The denial of a policy or a quota names none, and that of a webhook says so: to delete the
// child and create it again would evade it.
func isRefusedByValidation(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || strings.HasPrefix(answer.Status().Message, "admission webhook ") {
		return false
	}
	causes := causesOf(err)
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return cause.Field == "" })
}

// isReplaced reports whether a child was deleted or replaced by another object. An apply with a
// uid fails with a conflict if there is no object, and because a uid is immutable if there is
// another one.
func isReplaced(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || hasCause(err, "metadata.uid")
}

// hasCause reports whether the server refuses a field.
func hasCause(err error, field string) bool {
	return slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool { return cause.Field == field })
}
