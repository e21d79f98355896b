package operator

import (
	"context"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/settings"
)

// startUp calls the startup handlers, and checks the settings afterwards. From then on, the
// settings are final.
func (o *Operator) startUp(ctx context.Context, a *activityHandlers) error {
	ctx = context.WithValue(ctx, settingsKey{}, &o.settings)
	if err := a.runner().InOrder(ctx, o.activities.OfKind(handler.OnStartup)); err != nil {
		return err
	}
	a.started = true
	return checkSettings(o.settings)
}

type settingsKey struct{}

// SettingsFrom returns the settings of the operator from the context of a startup
// handler, which may change them. It returns nil for any other context.
func SettingsFrom(ctx context.Context) *settings.Settings {
	s, _ := ctx.Value(settingsKey{}).(*settings.Settings)
	return s
}
