package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/reconcile/posting"
)

// Event reports something about the handled object as a Kubernetes event, which
// kubectl describe shows. The type is usually Normal or Warning, the reason a
// word in CamelCase. The event is posted in the background; that it cannot be is
// no reason for a handler to fail, and is logged.
//
// Specification: Events.
func Event(ctx context.Context, eventType, reason, message string) {
	complain(ctx, posting.Event(ctx, nil, eventType, reason, message))
}

// Info is Event with the type Normal.
func Info(ctx context.Context, reason, message string) {
	complain(ctx, posting.Info(ctx, nil, reason, message))
}

// Warn is Event with the type Warning.
func Warn(ctx context.Context, reason, message string) {
	complain(ctx, posting.Warn(ctx, nil, reason, message))
}

// Exception is Event with the type Error, and with the error's text after the
// message.
func Exception(ctx context.Context, reason, message string, err error) {
	complain(ctx, posting.Exception(ctx, nil, reason, message, err))
}

// EventFor is Event about another object than the handled one, or about each
// object of a list. It fails if it cannot be told which objects are meant.
//
// Specification: Events, "Other objects".
func EventFor(ctx context.Context, objs any, eventType, reason, message string) error {
	return posting.Event(ctx, objs, eventType, reason, message)
}

func complain(ctx context.Context, err error) {
	if err != nil {
		log.FromContext(ctx).Error(err, "An event is not reported.")
	}
}
