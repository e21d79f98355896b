package converge

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChildError is why a child is not what it should be. The others were applied.
type ChildError struct {
	Key
	Err error
}

// Error names the child.
func (e *ChildError) Error() string { return fmt.Sprintf("the child %s: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *ChildError) Unwrap() error { return e.Err }

// NotOursError is why an existing object is not taken over as a child.
type NotOursError struct {
	Key
	// Owner describes whose the object is.
	Owner string
	// Remedy says what a person can do.
	Remedy string
}

// Error says whose the object is, and what to do.
func (e *NotOursError) Error() string {
	return fmt.Sprintf("the object exists already, and belongs to %s; it was not changed: %s", e.Owner, e.Remedy)
}

// EmptyError is why children are not deleted although the handler returns none.
type EmptyError struct {
	// Children is the number of children that exist.
	Children int
}

// Error says how to delete them on purpose.
func (e *EmptyError) Error() string {
	return fmt.Sprintf("the handler returned no children, but %d exist; they were not deleted: if that is intended, declare the handler with kopf.AllowEmpty()", e.Children)
}

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

// isReplaced reports whether a child was deleted or replaced by another object.
func isReplaced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
