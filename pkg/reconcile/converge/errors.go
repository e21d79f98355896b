package converge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeRefusal returns the error of the server with all fields that it names.
func describeRefusal(err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return err
	}
	var fields []string
	for _, cause := range answer.Status().Details.Causes {
		if cause.Field != "" && !strings.Contains(err.Error(), cause.Field) {
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	if len(fields) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(fields, "; "))
}

// isImmutable reports whether a change was refused because a field cannot be changed.
func isImmutable(err error) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return false
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	if answer.Status().Details != nil {
		for _, cause := range answer.Status().Details.Causes {
			if saysImmutable(cause.Message) || cause.Type == metav1.CauseType("FieldValueForbidden") {
				return true
			}
		}
	}
	return saysImmutable(answer.Status().Message)
}

// saysImmutable recognizes the messages of Kubernetes: there is no reason of its own for that.
func saysImmutable(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{"immutable", "updates to statefulset spec", "may not change once set", "cannot be changed", "may not be changed"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// isReplaced reports whether a child was deleted or replaced by another object. An apply with a
// uid fails with a conflict if there is no object, and because a uid is immutable if there is
// another one.
func isReplaced(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || hasCause(err, "metadata.uid")
}

// hasCause reports whether the server refuses a field.
func hasCause(err error, field string) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Details != nil &&
		slices.ContainsFunc(answer.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == field })
}
