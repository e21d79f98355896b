package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// surroundings are what every handler finds in its context.
type surroundings struct {
	client   client.Client
	recorder *events.Recorder
}

type surroundingsKey struct{}

// context puts the handled object, the logger and the rest into the context of
// one call.
func (s *surroundings) context(ctx context.Context, about reconcile.About) context.Context {
	ctx = log.IntoContext(ctx, about.Logger)
	ctx = hierarchy.WithLazyOwner(ctx, about.Body)
	if s.client != nil {
		ctx = hierarchy.WithScheme(ctx, s.client.Scheme())
	}
	ctx = events.WithRecorder(ctx, s.recorder)
	return context.WithValue(ctx, surroundingsKey{}, s)
}

// ClientFrom is the operator's client from the context of a handler; nil outside of
// one.
func ClientFrom(ctx context.Context) client.Client {
	if s, ok := ctx.Value(surroundingsKey{}).(*surroundings); ok {
		return s.client
	}
	return nil
}

type settingsKey struct{}

// withSettings lets startup handlers change the settings.
func withSettings(ctx context.Context, s *settings.Settings) context.Context {
	return context.WithValue(ctx, settingsKey{}, s)
}

// SettingsFrom are the settings of the operator from the context of a startup handler,
// who may change them; nil outside of one.
func SettingsFrom(ctx context.Context) *settings.Settings {
	s, _ := ctx.Value(settingsKey{}).(*settings.Settings)
	return s
}
