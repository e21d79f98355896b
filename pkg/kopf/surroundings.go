package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/kopf/hierarchy"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/posting"
)

// surroundings are what every handler finds in its context.
type surroundings struct {
	client   client.Client
	recorder *posting.Recorder
}

type surroundingsKey struct{}

// context puts the handled object, the logger and the rest into the context of
// one call.
func (s *surroundings) context(ctx context.Context, about reconcile.About) context.Context {
	ctx = log.IntoContext(ctx, about.Logger)
	ctx = hierarchy.WithOwnerOf(ctx, about.Body)
	ctx = posting.WithRecorder(ctx, s.recorder)
	return context.WithValue(ctx, surroundingsKey{}, s)
}

// ClientFrom returns the operator's client from the context of a handler, for
// functions that are called by handlers; nil outside of one.
func ClientFrom(ctx context.Context) client.Client {
	if s, ok := ctx.Value(surroundingsKey{}).(*surroundings); ok {
		return s.client
	}
	return nil
}
