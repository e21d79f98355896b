package kopf

import (
	"context"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/operator"
)

// Activity is the arguments of the handlers of the operator as a whole. Its
// methods are in package handler.
type Activity = handler.Activity

// Connection is what a login handler returns: a configuration of client-go, when it
// expires, and its priority. It is in package login.
type Connection = login.Connection

// Startup is the arguments of a startup handler.
type Startup struct {
	*Activity
	settings *Settings
}

// Settings are those of the operator. The handler may change them: they have an
// effect when all startup handlers have succeeded. In an operator that is added to
// a manager, those that are the manager's have none, and are refused: Replicas,
// Health, Metrics, Networking.QPS and Burst.
//
// Specification: Configuration, "Startup configuration".
func (s *Startup) Settings() *Settings { return s.settings }

// OnStartup declares a handler that is called before anything is watched or served:
// before any call of the API by the operator. Startup handlers are called one after
// the other, in the order of their declarations; when one of them fails for good,
// the operator does not start. Every replica calls them.
//
// Specification: Startup.
func (r *Registry) OnStartup(fn func(context.Context, *Startup) error, options ...ActivityOption) {
	r.activity(handler.OnStartup, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return nil, fn(ctx, &Startup{a, operator.SettingsFrom(ctx)})
	})
}

// OnCleanup declares a handler that is called when the operator ends, after the
// handlers of objects have returned, and before another operator is let in. Cleanup
// handlers are called one after the other, also after one that has failed. An
// operator that has not started, or that is killed, does not call them.
//
// Specification: Shutdown.
func (r *Registry) OnCleanup(fn func(context.Context, *Activity) error, options ...ActivityOption) {
	r.activity(handler.OnCleanup, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return nil, fn(ctx, a)
	})
}

// OnLogin declares a handler that tells how to connect to the cluster: in place of
// the ways of kubectl, and of the service account of the pod. It is called when the
// cluster is first needed, and again when its credentials have expired or are
// refused. It may return nil, if it has nothing to offer; of the connections of
// several handlers the one of the highest priority is used. Handlers are called at
// the same time.
//
// Specification: Authentication.
func (r *Registry) OnLogin(fn func(context.Context, *Activity) (*Connection, error), options ...ActivityOption) {
	r.activity(handler.OnLogin, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return fn(ctx, a)
	})
}

// OnProbe declares a handler that contributes to the answer about the health of the
// operator, under its id: anything that can be expressed as JSON. An error makes the
// operator unhealthy. Probes are called when somebody asks, all at the same time,
// but not again as long as Settings.Health.ProbeCacheTTL; they have that long, and are not
// retried within one answer.
//
// Specification: Health-checks, "Probe handlers".
func (r *Registry) OnProbe(fn func(context.Context, *Activity) (any, error), options ...ActivityOption) {
	r.activity(handler.OnProbe, fn, fn == nil, options, fn)
}

// connects tells that login handlers connect the operator.
func (r *Registry) connects() bool { return len(r.declared().Activities().OfKind(handler.OnLogin)) > 0 }

// activity adds a handler; the origin is what the developer has given.
func (r *Registry) activity(kind handler.Kind, origin any, missing bool, options []ActivityOption, call handler.ActivityFunc) {
	var function handler.Function
	if !missing {
		function = handler.Function{Origin: origin, Activity: call}
	}
	r.declared().Add(handler.ForOperator(kind, function, options...))
}

// OnStartup declares a startup handler in the default registry; see
// Registry.OnStartup.
func OnStartup(fn func(context.Context, *Startup) error, options ...ActivityOption) {
	DefaultRegistry.OnStartup(fn, options...)
}

// OnCleanup declares a cleanup handler in the default registry; see
// Registry.OnCleanup.
func OnCleanup(fn func(context.Context, *Activity) error, options ...ActivityOption) {
	DefaultRegistry.OnCleanup(fn, options...)
}

// OnLogin declares a login handler in the default registry; see Registry.OnLogin.
func OnLogin(fn func(context.Context, *Activity) (*Connection, error), options ...ActivityOption) {
	DefaultRegistry.OnLogin(fn, options...)
}

// OnProbe declares a probe in the default registry; see Registry.OnProbe.
func OnProbe(fn func(context.Context, *Activity) (any, error), options ...ActivityOption) {
	DefaultRegistry.OnProbe(fn, options...)
}
