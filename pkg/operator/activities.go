package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/operator/activities"
)

// logIn calls the login handlers, all at the same time. They have no client: they
// are there to make it possible.
func (o *operator) logIn(ctx context.Context, handlers registry.Handlers) (map[string]*login.Connection, error) {
	runner := o.runner()
	runner.Prepare = func(ctx context.Context, logger logr.Logger) (context.Context, handler.Operator) {
		return log.IntoContext(ctx, logger), handler.Operator{Logger: logger, Memo: o.memos}
	}
	connections := map[string]*login.Connection{}
	var problems []error
	for _, result := range runner.Together(ctx, handlers) {
		if connection, ok := result.Value.(*login.Connection); ok && connection != nil {
			connections[result.ID] = connection
		}
		if result.Err != nil {
			problems = append(problems, fmt.Errorf("the login handler %s has failed: %w", result.ID, result.Err))
		}
	}
	return connections, errors.Join(problems...)
}

// runner calls the handlers of activities.
func (o *operator) runner() activities.Runner {
	return activities.Runner{
		Logger: o.options.Logger, Backoff: o.settings.WithDefaults().Execution.Backoff,
		Prepare: func(ctx context.Context, logger logr.Logger) (context.Context, handler.Operator) {
			return log.IntoContext(ctx, logger), handler.Operator{Logger: logger, Client: o.client, Memo: o.memos}
		},
	}
}
