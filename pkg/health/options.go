package health

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Operator reports what readiness depends on; reconcile.Engine implements it. Its
// methods are called concurrently and must return quickly.
type Operator interface {
	WatchStatuses() []reconcile.WatchStatus
	State() metrics.State
}

// AdmissionOperator is an Operator that serves admission reviews.
type AdmissionOperator interface {
	// AdmissionProblem returns why API servers cannot send reviews, or must not anymore. It is ""
	// if they can.
	AdmissionProblem() string
}

// Probes calls all probe handlers. It returns the results of those that succeeded and
// the errors of those that failed, by handler ID. The function itself logs the errors.
type Probes func(ctx context.Context) (results map[string]any, failures map[string]error)

// Options configure a Server.
type Options struct {
	// Settings must have an address, and the defaults filled in.
	Settings settings.Health
	// Probes calls the probe handlers; nil means there are none.
	Probes Probes
	// Operator is asked for the readiness.
	Operator Operator
	Logger   logr.Logger
}
