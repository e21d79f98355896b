package kopf

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/events/handlerlog"
)

// Event reports something about the handled object as a Kubernetes event, which
// kubectl describe shows. The type is usually Normal or Warning, the reason a
// word in CamelCase. The event is posted in the background; that it cannot be is
// no reason for a handler to fail, and is logged.
//
// Specification: Events.
func Event(ctx context.Context, eventType, reason, message string) {
	complain(ctx, events.Event(ctx, nil, eventType, reason, message))
}

// Info is Event with the type Normal, if settings.Posting.Level allows it.
func Info(ctx context.Context, reason, message string) {
	complain(ctx, events.Info(ctx, nil, reason, message))
}

// Warn is Event with the type Warning, if settings.Posting.Level allows it.
func Warn(ctx context.Context, reason, message string) {
	complain(ctx, events.Warn(ctx, nil, reason, message))
}

// Exception is Event with the type Error, and with the error's text after the
// message, if settings.Posting.Level allows it.
func Exception(ctx context.Context, reason, message string, err error) {
	complain(ctx, events.Exception(ctx, nil, reason, message, err))
}

// EventFor is Event about another object than the handled one, or about each
// object of a list. It fails if it cannot be told which objects are meant.
//
// Specification: Events, "Other objects".
func EventFor(ctx context.Context, objs any, eventType, reason, message string) error {
	return events.Event(ctx, objs, eventType, reason, message)
}

// LogOnly makes a logger of which no events are made, of the one that a handler has:
// for what is of no interest to those who look at the object, or no business of
// theirs.
//
//	kopf.LogOnly(c.Logger()).Info("The credentials are renewed.", "user", user)
//	ctx = log.IntoContext(ctx, kopf.LogOnly(c.Logger())) // for functions that are called
//
// Any other logger is returned as it is. settings.Posting.WithoutLogs does the same for
// all handlers.
func LogOnly(logger logr.Logger) logr.Logger { return handlerlog.LogOnly(logger) }

func complain(ctx context.Context, err error) {
	if err != nil {
		LogOnly(log.FromContext(ctx)).Error(err, "An event is not reported.")
	}
}
