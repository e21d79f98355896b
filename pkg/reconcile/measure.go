package reconcile

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// measure counts an attempt of a handler. A sub-handler is counted as one of the
// handler that was declared: the ids of sub-handlers may be as many as objects.
func (e *Engine) measure(s *served, d *handler.Declaration, o execution.Outcome) {
	h := metrics.Handler{Resource: s.name, Kind: string(d.Kind), ID: d.Top().ID}
	e.Metrics.Attempt(h, outcomeOf(o), o.Called, o.Took)
}

func outcomeOf(o execution.Outcome) metrics.Outcome {
	var children *handler.SubhandlersError
	switch {
	case o.Ignored != nil:
		return metrics.Ignored
	case o.Succeeded():
		return metrics.Succeeded
	case o.Final:
		return metrics.Failed
	case errors.As(o.Err, &children):
		return metrics.Waiting
	default:
		return metrics.Retried
	}
}

// reason is what a write of the intent is for.
func (in *intent) reason(subresource string) metrics.Reason {
	switch {
	case subresource != "":
		return metrics.Status
	case in.sweep:
		return metrics.Cleanup
	case in.ends():
		return metrics.Handled
	case in.cycle != nil:
		return metrics.Progress
	case in.hold || in.release:
		return metrics.Finalizer
	default:
		return metrics.Patch
	}
}

func answerOf(err error) metrics.Answer {
	switch {
	case err == nil:
		return metrics.Written
	case apierrors.IsConflict(err):
		return metrics.Conflict
	case refused(err):
		return metrics.Refused
	default:
		return metrics.Unanswered
	}
}
