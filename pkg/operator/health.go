package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// monitor reports the state of the operator to the kubelet, to the readiness check of a
// manager, and in the metrics.
//
// Specification: Health-checks.
type monitor struct {
	settings settings.Health
	operator health.Operator
	probes   health.Probes
	metrics  *metrics.Metrics
	logger   logr.Logger
}

// newMonitor returns the monitor of an engine and its admission.
func newMonitor(engine *reconcile.Engine, a *admission, recorder *events.Recorder, probes health.Probes, logger logr.Logger) *monitor {
	engine.Metrics.Observe(func() metrics.State { return stateWith(engine, a, recorder) })
	return &monitor{
		settings: engine.Settings.Health, operator: healthOf(engine, a),
		probes: probes, metrics: engine.Metrics, logger: logger.WithName("health"),
	}
}

// serveHealth serves the health endpoints until the context is done, if they have an address.
func (m *monitor) serveHealth(ctx context.Context) error {
	if m.settings.Address == "" {
		return nil
	}
	return health.New(health.Options{
		Settings: m.settings, Probes: m.probes, Operator: m.operator, Logger: m.logger,
	}).Start(ctx)
}

// check returns an error if the operator is not ready.
func (m *monitor) check(request *http.Request) error {
	return health.ReadyCheck(m.operator, m.settings.MaxQueueAge)(request)
}

// healthOf returns the operator for the health checks.
func healthOf(engine *reconcile.Engine, a *admission) health.Operator {
	if a == nil {
		return engine
	}
	return engineWithAdmission{engine, a}
}

// engineWithAdmission is an engine whose readiness also depends on its admission handlers.
type engineWithAdmission struct {
	*reconcile.Engine
	admission *admission
}

// AdmissionProblem returns why the API servers cannot call the handlers, or will not for much longer.
// It is "" if they can.
func (e engineWithAdmission) AdmissionProblem() string {
	switch {
	case e.admission.isStopping():
		return "the operator is stopping"
	case e.admission.isPublished():
		return ""
	default:
		return "the API servers do not know the address of the admission server yet"
	}
}

// addReadyzCheck adds the readiness of the operator to the manager, if the settings name a
// check.
func (o *Operator) addReadyzCheck(mgr manager.Manager) error {
	name := o.options.Settings.Health.ManagerCheck
	if name == "" {
		return nil
	}
	err := mgr.AddReadyzCheck(name, func(request *http.Request) error {
		r, started := o.replica.get()
		if !started {
			return errors.New("the operator has not started yet")
		}
		return r.monitor.check(request)
	})
	if err != nil {
		return fmt.Errorf("the check %q (settings.Health.ManagerCheck) cannot be added to the manager: %w", name, err)
	}
	return nil
}
