package write

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/metrics"
)

// reason returns the purpose of a write for the metrics.
func (u *Update) reason(part string) metrics.Reason {
	switch {
	case part != "":
		return metrics.Status
	case u.Decision.Leftovers != nil:
		return metrics.Cleanup
	case u.endsCycle():
		return metrics.Handled
	case u.Cycle != nil || u.Calls.HasRecords():
		return metrics.Progress
	case u.Decision.AddFinalizer || u.Decision.RemoveFinalizer:
		return metrics.Finalizer
	default:
		return metrics.Patch
	}
}

// answerOf returns the response of the server for the metrics.
func answerOf(err error) metrics.Answer {
	switch {
	case err == nil:
		return metrics.Written
	case apierrors.IsConflict(err):
		return metrics.Conflict
	case isRejected(err):
		return metrics.Rejected
	default:
		return metrics.Unanswered
	}
}
