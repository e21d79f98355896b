package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/operator/activities"
)

// activityHandlers calls the handlers of the operator itself that need a client: startup
// handlers (startUp), probes, and cleanup handlers (cleanUp).
type activityHandlers struct {
	operator  *Operator
	client    func() client.Client
	started   bool // the startup handlers have succeeded
	abandoned bool // a cleanup handler has not returned, as known after cleanUp
	cleanedUp sync.Once
}

func (o *Operator) newActivityHandlers(c func() client.Client) *activityHandlers {
	return &activityHandlers{operator: o, client: c}
}

func (a *activityHandlers) runner() activities.Runner { return a.operator.activityRunner(a.client) }

// probe calls the probe handlers. It returns their results or errors by their ids.
func (a *activityHandlers) probe(ctx context.Context) (results map[string]any, failures map[string]error) {
	results = map[string]any{}
	failures = map[string]error{}
	for _, result := range a.runner().Once(ctx, a.operator.activities.OfKind(handler.OnProbe)) {
		if result.Err != nil {
			failures[result.ID] = result.Err
			continue
		}
		results[result.ID] = result.Value
	}
	return results, failures
}

// logIn calls the login handlers concurrently. They have no client, because they establish
// the connection.
func (o *Operator) logIn(ctx context.Context) (map[string]*login.Connection, error) {
	connections := map[string]*login.Connection{}
	var problems []error
	for _, result := range o.activityRunner(nil).Together(ctx, o.activities.OfKind(handler.OnLogin)) {
		if connection, ok := result.Value.(*login.Connection); ok && connection != nil {
			connections[result.ID] = connection
		}
		if result.Err != nil {
			problems = append(problems, fmt.Errorf("the login handler %s failed: %w", result.ID, result.Err))
		}
	}
	return connections, errors.Join(problems...)
}

// activityRunner returns a runner for the handlers of the operator itself. A nil function
// means that they have no client.
func (o *Operator) activityRunner(c func() client.Client) activities.Runner {
	return activities.Runner{
		Logger: o.options.Logger, Backoff: o.settings.WithDefaults().Execution.Backoff,
		Prepare: func(ctx context.Context, logger logr.Logger) (context.Context, handler.Operator) {
			return log.IntoContext(ctx, logger), handler.Operator{Logger: logger, Client: c, Memo: o.memos}
		},
	}
}
