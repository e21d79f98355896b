package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
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
	return errors.Join(checkSettings(o.settings), o.handlers.CheckName(o.settings.Name))
}

type settingsKey struct{}

// SettingsFrom returns the settings of the operator from the context of a startup
// handler, which may change them. It returns nil for any other context.
func SettingsFrom(ctx context.Context) *settings.Settings {
	s, _ := ctx.Value(settingsKey{}).(*settings.Settings)
	return s
}

// SettingsAfterStartup calls the startup handlers of an operator that does not run, once each, and
// returns the settings that they leave. It calls the cleanup handlers afterwards.
func SettingsAfterStartup(ctx context.Context, options Options) (settings.Settings, error) {
	o, err := newOperator(options)
	if err != nil {
		return settings.Settings{}, err
	}
	connection := newConnection(ctx, o)
	defer connection.close()
	a := o.newActivityHandlers(connection.client)
	defer a.cleanUp(ctx)
	startup := context.WithValue(ctx, settingsKey{}, &o.settings)
	for _, d := range o.activities.OfKind(handler.OnStartup) {
		for _, result := range a.runner().Once(startup, registry.Handlers{d}) {
			if result.Err != nil {
				return o.settings, fmt.Errorf("the startup handler %s (%s) has failed: %w", d.ID, d.DeclaredAt, result.Err)
			}
		}
		a.started = true
	}
	return o.settings, checkSettings(o.settings)
}
