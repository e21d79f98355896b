package kopf

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// addHealth adds the endpoints of the operator to the manager, and its check to the
// endpoints of the manager: what of both is asked for.
//
// Specification: Health-checks.
func addHealth(mgr manager.Manager, options Options, engine *reconcile.Engine, probes health.Probes) error {
	s := options.Settings.WithDefaults().Health
	if s.ManagerCheck != "" {
		if err := mgr.AddReadyzCheck(s.ManagerCheck, health.Ready(engine, s.Stall)); err != nil {
			return fmt.Errorf("the check %q (settings.Health.ManagerCheck) cannot be added to the manager: %w", s.ManagerCheck, err)
		}
	}
	if s.Address == "" {
		return nil
	}
	server := health.New(health.Options{Settings: s, Probes: probes, Operator: engine, Logger: options.Logger.WithName("health")})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("the health endpoint cannot be added to the manager: %w", err)
	}
	return nil
}
