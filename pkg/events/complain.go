package events

import (
	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// complaints logs troubles, each kind once in a while: the same trouble usually
// befalls all events.
type complaints struct {
	logger         logr.Logger
	drops, failure *rate.Sometimes
	known          *int64 // the drops that were logged already
}

func newComplaints(logger logr.Logger) complaints {
	return complaints{
		logger:  logger,
		drops:   &rate.Sometimes{Interval: complaintInterval},
		failure: &rate.Sometimes{Interval: complaintInterval},
		known:   new(int64),
	}
}

func (c complaints) dropped(total int64) {
	if total == *c.known {
		return
	}
	c.drops.Do(func() {
		c.logger.Info("Events were dropped: there are more than can be posted.", "count", total-*c.known)
		*c.known = total
	})
}

func (c complaints) failed(event *corev1.Event, err error) {
	c.failure.Do(func() {
		message := "An event could not be posted; more of these are not logged for a while."
		if apierrors.IsForbidden(err) {
			message = "Events cannot be posted: allow the operator to create and patch events in the namespace."
		}
		c.logger.Error(err, message, about(event)...)
	})
}

// about names the event for the log. The message stays out of it: what it says
// was logged by its author, if it should be.
func about(event *corev1.Event) []any {
	ref := event.InvolvedObject
	return []any{
		"apiVersion", ref.APIVersion, "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name,
		"eventNamespace", event.Namespace, "reason", event.Reason,
	}
}
