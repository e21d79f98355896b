package kopf

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/events/handlerlog"
)

// Event posts a Kubernetes event about the handled object, which kubectl describe shows. The
// type is usually Normal or Warning, and the reason is a word in CamelCase. The event is
// posted in the background. A failure is logged, and does not fail the handler. The context
// must be that of the handler.
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

// EventFor is Event about another object, or about each object of a list. It returns an
// error if an object cannot be identified.
//
// Specification: Events, "Other objects".
func EventFor(ctx context.Context, objs any, eventType, reason, message string) error {
	return events.Event(ctx, objs, eventType, reason, message)
}

// LogOnly returns a logger whose lines do not become events, from the logger of a handler.
// Use it for lines that people who look at the object do not need, or must not see.
//
//	kopf.LogOnly(c.Logger()).Info("The credentials are renewed.", "user", user)
//	ctx = log.IntoContext(ctx, kopf.LogOnly(c.Logger())) // for functions that are called
//
// It returns any other logger unchanged. Settings.Posting.WithoutLogs does the same for all
// handlers.
func LogOnly(logger logr.Logger) logr.Logger { return handlerlog.LogOnly(logger) }

func complain(ctx context.Context, err error) {
	if err != nil {
		LogOnly(log.FromContext(ctx)).Error(err, "An event is not reported.")
	}
}
