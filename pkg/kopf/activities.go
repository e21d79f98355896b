package kopf

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/operator"
)

// Activity has the arguments of handlers of the operator itself: OnStartup, OnCleanup, OnLogin,
// and OnProbe.
//
// Specification: Arguments.
type Activity struct{ call *handler.Call }

func activityOf(c *handler.Call) *Activity { return &Activity{c} }

var _ memo.Holder = (*Activity)(nil)

// Logger returns a logger that adds the handler to every line.
func (a *Activity) Logger() logr.Logger { return a.call.Operator.Logger }

// Param returns the value of the option Param, or nil without it.
func (a *Activity) Param() any { return a.call.Param() }

// Client returns a client of the cluster with the operator's permissions. It returns nil
// for logins, which establish the connection.
func (a *Activity) Client() client.Client {
	if a.call.Operator.Client == nil {
		return nil
	}
	return a.call.Operator.Client()
}

// Memo returns the operator's values in memory, from which the values of the objects are
// copied. Use a memo.Memo to get its value.
//
// Specification: In-memory containers, "Operator memos".
func (a *Activity) Memo() *memo.Values { return a.call.Operator.Memo }

// Retry returns the number of earlier attempts: 0 for the first attempt.
func (a *Activity) Retry() int { return a.call.Attempt.Retry }

// Started returns the time of the first attempt.
func (a *Activity) Started() time.Time { return a.call.Attempt.Started }

// Runtime returns the time from the first attempt to this one.
func (a *Activity) Runtime() time.Duration { return a.call.Runtime() }

// Startup has the arguments of a startup handler: those of Activity, and the Settings.
type Startup struct {
	Activity
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
func (r *Registry) OnStartup(fn func(context.Context, *Startup) error, options ...Option) {
	var function handler.Function
	if fn != nil {
		function = handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) {
			return nil, fn(ctx, &Startup{*activityOf(c), operator.SettingsFrom(ctx)})
		}}
	}
	r.declared().Add(handler.ForOperator(handler.OnStartup, function, options...))
}

// OnCleanup declares a handler that is called when the operator ends, after the handlers of
// objects have returned, and before another replica takes over. Cleanup handlers are called
// one after the other, also if one of them fails. An operator that has not started, or that
// is killed, does not call them.
//
// Specification: Shutdown.
func (r *Registry) OnCleanup(fn func(context.Context, *Activity) error, options ...Option) {
	r.declared().Add(handler.ForOperator(handler.OnCleanup, functionOf(fn, activityOf), options...))
}

// OnLogin declares a handler that returns how to connect to the cluster. With login
// handlers, the operator uses neither a kubeconfig nor the service account of its pod. They
// are called when the operator first needs the cluster, and again when the credentials have
// expired or the cluster rejects them. A login handler can return nil if it has no
// connection. Login handlers are called concurrently; the connection with the highest
// priority is used.
//
// Specification: Authentication.
func (r *Registry) OnLogin(fn func(context.Context, *Activity) (*login.Connection, error), options ...Option) {
	r.declared().Add(handler.ForOperator(handler.OnLogin, returningOf(fn, activityOf), options...))
}

// OnProbe declares a handler whose result becomes a part of the health endpoint, under the
// id of the handler. The result must be expressible as JSON. An error makes the operator
// unhealthy. Probes are called concurrently for a request, and their results are reused for
// Settings.Health.ProbeCacheTTL, which is also their time limit. They are not retried within
// a request.
//
// Specification: Health-checks, "Probe handlers".
func (r *Registry) OnProbe(fn func(context.Context, *Activity) (any, error), options ...Option) {
	r.declared().Add(handler.ForOperator(handler.OnProbe, returningOf(fn, activityOf), options...))
}

// hasLogin reports whether login handlers connect the operator.
func (r *Registry) hasLogin() bool {
	return r != nil && len(r.declared().Activities().OfKind(handler.OnLogin)) > 0
}
