package events

import (
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// lossLog logs lost events, at most once per interval and kind, because the same
// problem usually affects all events.
type lossLog struct {
	logger         logr.Logger
	drops, failure *rate.Sometimes
	known          *int64 // drops that are already logged
}

func newLossLog(logger logr.Logger) lossLog {
	return lossLog{
		logger:  logger,
		drops:   &rate.Sometimes{Interval: lossLogInterval},
		failure: &rate.Sometimes{Interval: lossLogInterval},
		known:   new(int64),
	}
}

func (l lossLog) dropped(total int64) {
	if total == *l.known {
		return
	}
	l.drops.Do(func() {
		l.logger.Info("Events were dropped because there are too many.", "count", total-*l.known)
		*l.known = total
	})
}

func (l lossLog) failed(event *corev1.Event, err error) {
	l.failure.Do(func() {
		message := "An event could not be posted. Similar failures are not logged for a while."
		if apierrors.IsForbidden(err) {
			message = "Events cannot be posted: allow the operator to create and patch events in the namespace."
		}
		l.logger.Error(err, message, logValues(event)...)
	})
}

// logValues identifies the event in the log. It leaves out the message, which its
// author has logged if necessary.
func logValues(event *corev1.Event) []any {
	ref := event.InvolvedObject
	return []any{
		"apiVersion", ref.APIVersion, "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name,
		"eventNamespace", event.Namespace, "reason", event.Reason,
	}
}
