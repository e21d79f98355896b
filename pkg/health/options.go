package health

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Operator is whom the readiness is asked of: a reconcile.Engine. Its methods are
// called from many goroutines, and must be quick.
type Operator interface {
	Watching() []reconcile.Watching
	State() metrics.State
}

// AdmissionOperator is an Operator that API servers ask about objects.
type AdmissionOperator interface {
	// AdmissionProblem is why they cannot ask yet; empty: they can.
	AdmissionProblem() string
}

// Probes calls all probe handlers, and returns what they have returned, and which
// of them have failed, each by its id. Who has failed is in the second one only.
// The handlers' errors are for the log, which is the business of the function.
type Probes func(ctx context.Context) (results map[string]any, failures map[string]error)

// Options are what a Server needs.
type Options struct {
	// Settings are complete: with an address, and with the defaults of the rest.
	Settings settings.Health
	// Probes calls the probe handlers; nil: there are none.
	Probes Probes
	// Operator is asked for the readiness.
	Operator Operator
	Logger   logr.Logger
}
