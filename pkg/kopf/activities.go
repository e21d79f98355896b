package kopf

import (
	"context"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/operator"
)

// Activity has the arguments of operator handlers. Its methods are those of
// [handler.Activity]: Client, Logger, Memo, Param, Retry, Started, and Runtime.
type Activity = handler.Activity

// Connection is the result of a login handler: a configuration of client-go, the time when
// it expires, and its priority. Its fields are those of [login.Connection].
type Connection = login.Connection

// Startup has the arguments of a startup handler.
type Startup struct {
	*Activity
	settings *Settings
}

// Settings returns the settings of the operator. The handler may change them; the changes
// take effect after all startup handlers have succeeded. In an operator that is added to a
// manager, changes of what the manager decides are errors: Replicas, Health, Metrics,
// Networking.QPS, and Networking.Burst.
//
// Specification: Configuration, "Startup configuration".
func (s *Startup) Settings() *Settings { return s.settings }

// OnStartup declares a handler that is called when the operator starts, before the operator
// calls the API, watches, or serves anything. Startup handlers are called one after the
// other, in the order of their declarations. If one of them fails permanently, the operator
// does not start. Every replica calls them.
//
// Specification: Startup.
func (r *Registry) OnStartup(fn func(context.Context, *Startup) error, options ...ActivityOption) {
	r.activity(handler.OnStartup, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return nil, fn(ctx, &Startup{a, operator.SettingsFrom(ctx)})
	})
}

// OnCleanup declares a handler that is called when the operator ends, after the handlers of
// objects have returned, and before another replica takes over. Cleanup handlers are called
// one after the other, also if one of them fails. An operator that has not started, or that
// is killed, does not call them.
//
// Specification: Shutdown.
func (r *Registry) OnCleanup(fn func(context.Context, *Activity) error, options ...ActivityOption) {
	r.activity(handler.OnCleanup, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return nil, fn(ctx, a)
	})
}

// OnLogin declares a handler that returns how to connect to the cluster. With login
// handlers, the operator uses neither a kubeconfig nor the service account of its pod. They
// are called when the operator first needs the cluster, and again when the credentials have
// expired or the cluster rejects them. A login handler can return nil if it has no
// connection. Login handlers are called concurrently; the connection with the highest
// priority is used.
//
// Specification: Authentication.
func (r *Registry) OnLogin(fn func(context.Context, *Activity) (*Connection, error), options ...ActivityOption) {
	r.activity(handler.OnLogin, fn, fn == nil, options, func(ctx context.Context, a *Activity) (any, error) {
		return fn(ctx, a)
	})
}

// OnProbe declares a handler whose result becomes a part of the health endpoint, under the
// id of the handler. The result must be expressible as JSON. An error makes the operator
// unhealthy. Probes are called concurrently for a request, and their results are reused for
// Settings.Health.ProbeCacheTTL, which is also their time limit. They are not retried within
// a request.
//
// Specification: Health-checks, "Probe handlers".
func (r *Registry) OnProbe(fn func(context.Context, *Activity) (any, error), options ...ActivityOption) {
	r.activity(handler.OnProbe, fn, fn == nil, options, fn)
}

// hasLogin reports whether login handlers connect the operator.
func hasLogin(r *Registry) bool {
	return len(orDefault(r).declared().Activities().OfKind(handler.OnLogin)) > 0
}

// activity adds a handler. The origin is the function of the developer.
func (r *Registry) activity(kind handler.Kind, origin any, missing bool, options []ActivityOption, call handler.ActivityFunc) {
	var function handler.Function
	if !missing {
		function = handler.Function{Origin: origin, Activity: call}
	}
	r.declared().Add(handler.ForOperator(kind, function, options...))
}

// OnStartup declares a startup handler in DefaultRegistry. See Registry.OnStartup.
func OnStartup(fn func(context.Context, *Startup) error, options ...ActivityOption) {
	DefaultRegistry.OnStartup(fn, options...)
}

// OnCleanup declares a cleanup handler in DefaultRegistry. See Registry.OnCleanup.
func OnCleanup(fn func(context.Context, *Activity) error, options ...ActivityOption) {
	DefaultRegistry.OnCleanup(fn, options...)
}

// OnLogin declares a login handler in DefaultRegistry. See Registry.OnLogin.
func OnLogin(fn func(context.Context, *Activity) (*Connection, error), options ...ActivityOption) {
	DefaultRegistry.OnLogin(fn, options...)
}

// OnProbe declares a probe in DefaultRegistry. See Registry.OnProbe.
func OnProbe(fn func(context.Context, *Activity) (any, error), options ...ActivityOption) {
	DefaultRegistry.OnProbe(fn, options...)
}
