package kopf

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/operator"
	"github.com/kopf-go/kopf/pkg/operator/permissions"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// Settings configure an operator. Its groups and fields are in package settings:
//
//	go doc github.com/kopf-go/kopf/pkg/settings.Settings
type Settings = settings.Settings

// Options configure an operator. Every field but the registry has a default. They are the same for
// NewOperator, Run, Main, and Add; a field that one of these cannot use is an error, which
// names the field and the alternative.
type Options struct {
	// Registry has the handlers. It is required, except by Main and Commands, whose default is
	// DefaultRegistry.
	Registry *Registry
	// Settings configure the behavior. Default: settings.Default; with Main, the settings
	// of the command line.
	Settings Settings
	// Config is the connection to the cluster. Default: the connection that the login
	// handlers return; without login handlers, the kubeconfig, or the service account of the
	// pod. Add uses the connection of the manager instead.
	Config *rest.Config
	// Connect returns the connection when it is first needed, instead of Config and login
	// handlers. Default: as for Config. Not for Add.
	Connect func(context.Context) (*rest.Config, error)
	// Logger is the destination of the log. Default: the logger of ctrl.SetLogger; with
	// Main, standard error; with Add, the logger of the manager, with the name "kopf".
	Logger logr.Logger
	// Scheme has the Go types of typed handlers and of the client for handlers. Default:
	// the built-in types of Kubernetes. Add uses the scheme of the manager instead.
	Scheme *runtime.Scheme
	// Tracer makes spans of cycles, passes, attempts, writes, and admission reviews. The module
	// github.com/kopf-go/kopf/otelkopf is the adapter to OpenTelemetry. Default: no spans.
	Tracer tracing.Tracer
	// Permissions observe the requests of the manager, so that the operator logs the rules that its
	// roles lack, and can learn roles (Settings.Permissions.LearnFile). Make them by
	// ObservePermissions. Default: not observed with Add. Only for Add; others always observe their
	// requests.
	Permissions *PermissionObserver
}

// complete returns the options of the engine. A nil registry is an error: it is probably a variable
// that is not set yet.
func (o Options) complete() (operator.Options, error) {
	if o.Registry == nil {
		unset := errors.New("kopf.Options.Registry is nil: set the registry in which the handlers are declared, or kopf.DefaultRegistry for handlers of kopf.OnCreate and its siblings")
		return operator.Options{}, errors.Join(unset, DefaultRegistry.handlers.Misplaced())
	}
	o.Registry.configuration.applyTo(&o.Settings)
	var misplaced error
	if o.Registry != DefaultRegistry {
		misplaced = DefaultRegistry.handlers.Misplaced()
	}
	return operator.Options{
		Registry: o.Registry.declared(), Mistakes: misplaced, Settings: o.Settings, Config: o.Config, Connect: o.Connect,
		Logger: o.Logger, Scheme: o.Scheme, Tracer: o.Tracer, Requests: o.Permissions.observed(),
	}, nil
}

// PermissionObserver observes which permissions the clients of a connection use, and which they
// lack. ObservePermissions returns it.
type PermissionObserver struct{ requests *permissions.Requests }

// ObservePermissions observes the requests of all clients that are made with the configuration from
// now on. Call it before you make the manager, and pass the result to Add:
//
//	config := ctrl.GetConfigOrDie()
//	observer := kopf.ObservePermissions(config)
//	mgr, err := ctrl.NewManager(config, ctrl.Options{})
//	// …
//	operator, err := kopf.Add(mgr, kopf.Options{Registry: registry, Permissions: observer})
//
// The other controllers of the manager share the connection, so what the operator learns has their
// requests, too. One operator can have the observer; Add returns an error for a second one. An
// observer keeps one entry for each verb, resource, and namespace, and none for each object. It is
// safe for concurrent use.
func ObservePermissions(config *rest.Config) *PermissionObserver {
	o := &PermissionObserver{permissions.NewRequests()}
	o.requests.Wrap(config)
	return o
}

func (o *PermissionObserver) observed() *permissions.Requests {
	if o == nil {
		return nil
	}
	return o.requests
}

// Operator is one operator. NewOperator and Add return it. It can run once. It is safe for
// concurrent use.
type Operator struct{ operator *operator.Operator }

// NewOperator returns an operator. It returns an error for mistakes in the declarations of
// handlers and in the settings, all at once. The operator neither starts anything nor calls
// the cluster before Run.
//
// Several operators can run in one process, each with its own registry.
//
// Specification: Embedding.
func NewOperator(options Options) (*Operator, error) {
	complete, err := options.complete()
	if err != nil {
		return nil, err
	}
	o, err := operator.NewOperator(complete)
	if err != nil {
		return nil, err
	}
	return &Operator{o}, nil
}

// Run runs the operator until the context is done. It returns when all handlers have
// returned: by themselves within the grace period, or because their context was canceled
// after it. It returns an error if the operator cannot start or cannot continue. An operator
// that loses its lease cannot continue: it cancels its handlers at once.
//
// Run does not handle signals. It can be called once, and not for an operator that Add has
// added to a manager.
func (o *Operator) Run(ctx context.Context) error { return o.operator.Run(ctx) }

// Ready returns a channel that is closed when the operator knows all objects that it may list, has
// filled its indices, and can call handlers. With admission handlers, the API servers must also be
// able to call them. With conversions, and unless the replica may stand by, the cluster must also let it convert the
// objects. A standby replica is ready, too. If the operator ends before that, the channel
// is never closed, so also wait for the end of Run.
func (o *Operator) Ready() <-chan struct{} { return o.operator.Ready() }

// Handlers returns the ids of the declared handlers, sorted, those of activities included.
func (o *Operator) Handlers() []string { return o.operator.Handlers() }

// Run runs an operator: it calls NewOperator and Operator.Run.
func Run(ctx context.Context, options Options) error {
	o, err := NewOperator(options)
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// Add adds an operator to a controller-runtime manager, which runs it together with its
// controllers. The operator uses the connection, the scheme, the client, and the leader
// election of the manager: every replica watches the objects, and only the leader handles
// them. The webhook server of the manager serves admission handlers below /kopf/, unless
// Settings.Admission has a server.
//
// Add returns an error for mistakes in the declarations and the settings, and for options that
// the manager decides. These are Config, Connect, Scheme, login handlers, and the settings for
// replicas, for serving metrics, and for limits of requests.
//
// Specification: Embedding.
func Add(mgr manager.Manager, options Options) (*Operator, error) {
	complete, err := options.complete()
	if err != nil {
		return nil, err
	}
	o, err := operator.Add(mgr, complete)
	if err != nil {
		return nil, err
	}
	return &Operator{o}, nil
}

// ClientFrom returns the operator's client from the context of a handler, for functions
// that handlers call. It returns nil for any other context.
func ClientFrom(ctx context.Context) client.Client { return operator.ClientFrom(ctx) }
