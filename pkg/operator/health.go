package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// serveHealth answers the kubelet, if that is asked for, until the context is done.
//
// Specification: Health-checks.
func (o *operator) serveHealth(ctx context.Context) error {
	select {
	case <-o.begun:
	case <-ctx.Done():
		return nil
	}
	s := o.settings.WithDefaults().Health
	if s.Address == "" {
		return nil
	}
	return health.New(health.Options{
		Settings: s, Probes: o.probe, Operator: o.visible(), Logger: o.options.Logger.WithName("health"),
	}).Start(ctx)
}

// asked is an engine with admission handlers beside it.
type asked struct {
	*reconcile.Engine
	admissions *admissions
}

// AdmissionProblem is why the API servers cannot ask the handlers yet.
func (a asked) AdmissionProblem() string {
	select {
	case <-a.admissions.reachable:
		return ""
	default:
		return "the API servers do not know yet where to ask"
	}
}

// visible is what the health of the operator depends on.
func (o *operator) visible() health.Operator {
	if o.admissions == nil {
		return o.engine
	}
	return asked{o.engine, o.admissions}
}

// probe calls the probe handlers.
func (o *operator) probe(ctx context.Context) (results map[string]any, failures map[string]error) {
	results, failures = map[string]any{}, map[string]error{}
	for _, result := range o.runner().Once(ctx, o.activities.Of(handler.OnProbe)) {
		if result.Err != nil {
			failures[result.ID] = result.Err
			continue
		}
		results[result.ID] = result.Value
	}
	return results, failures
}

// addReadyzCheck makes the readiness of the operator a part of that of the manager,
// if that is asked for.
func (o *operator) addReadyzCheck(mgr manager.Manager) error {
	s := o.options.Settings.WithDefaults().Health
	if s.ManagerCheck == "" {
		return nil
	}
	err := mgr.AddReadyzCheck(s.ManagerCheck, func(request *http.Request) error {
		select {
		case <-o.begun:
			return health.ReadyCheck(o.visible(), s.MaxQueueAge)(request)
		default:
			return errors.New("the operator has yet to start")
		}
	})
	if err != nil {
		return fmt.Errorf("the check %q (settings.Health.ManagerCheck) cannot be added to the manager: %w", s.ManagerCheck, err)
	}
	return nil
}
