package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// callContext contains the values that every handler of an object finds in its context.
type callContext struct {
	client   client.Client
	recorder *events.Recorder
}

type callContextKey struct{}

// add adds the handled object, the logger, the recorder, and the client to the context of
// one call.
func (c *callContext) add(ctx context.Context, call reconcile.CallContext) context.Context {
	ctx = log.IntoContext(ctx, call.Logger)
	ctx = hierarchy.WithLazyOwner(ctx, call.Body)
	if c.client != nil {
		ctx = hierarchy.WithScheme(ctx, c.client.Scheme())
	}
	ctx = events.WithRecorder(ctx, c.recorder)
	return context.WithValue(ctx, callContextKey{}, c)
}

// WithCall returns the context of one call, as handlers get it, for tests that call them by
// hand.
func WithCall(ctx context.Context, handlers client.Client, posted events.Poster, call reconcile.CallContext) context.Context {
	ctx = (&callContext{client: handlers}).add(ctx, call)
	return events.WithRecorder(ctx, posted)
}

// ClientFrom returns the operator's client from the context of a handler. It returns
// nil for any other context.
func ClientFrom(ctx context.Context) client.Client {
	if c, ok := ctx.Value(callContextKey{}).(*callContext); ok {
		return c.client
	}
	return nil
}
