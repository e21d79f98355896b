package kopf

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/operator"
)

// Options are what an operator is made of. Every field has a default. NewOperator, Run,
// Main and Add take them; a field that one of them cannot use is an error, which names
// the field and what to do instead.
type Options struct {
	// Registry has the handlers. Default: DefaultRegistry.
	Registry *Registry
	// Settings tune the operator. Default: settings.Default; with Main, those of the
	// command line.
	Settings Settings
	// Config connects to the cluster. Default: what the login handlers return; without
	// any, as kubectl does it, or the service account of the pod. Not for Add: the
	// manager is connected.
	Config *rest.Config
	// Connect returns the Config when it is first needed, instead of Config and of login
	// handlers. Default: the cluster is found as described there. Not for Add.
	Connect func(context.Context) (*rest.Config, error)
	// Logger takes the log. Default: what ctrl.SetLogger was given; with Main, standard
	// error; with Add, the manager's logger, named "kopf".
	Logger logr.Logger
	// Scheme knows the Go types of typed handlers and of the handlers' client.
	// Default: the built-in types of Kubernetes; with Add, the manager's scheme, which
	// is the only one possible there.
	Scheme *runtime.Scheme
}

func (o Options) complete() operator.Options {
	return operator.Options{
		Registry: o.Registry.declared(), Settings: o.Settings, Config: o.Config, Connect: o.Connect,
		Logger: o.Logger, Scheme: o.Scheme,
	}
}

// Operator is one operator, made by NewOperator or Add. It lives once. It is safe for
// concurrent use.
type Operator struct{ operator *operator.Operator }

// NewOperator makes an operator. It returns an error for mistakes in the declarations of
// the handlers and in the settings, all of them at once. Nothing is started, and nothing
// is asked of the cluster, before Run.
//
// Several operators can run in one process, each with its own registry.
//
// Specification: Embedding.
func NewOperator(options Options) (*Operator, error) {
	o, err := operator.NewOperator(options.complete())
	if err != nil {
		return nil, err
	}
	return &Operator{o}, nil
}

// Run runs the operator until the context is done. It returns when all handlers have
// returned: by themselves within the grace period, or because their context was canceled
// after it. It returns an error if the operator cannot start or cannot go on. An operator
// that loses its lease cannot go on: its handlers are canceled at once, and Run returns an
// error.
//
// Run does not listen to signals. It can be called once, and not for an operator that
// Add has added to a manager.
func (o *Operator) Run(ctx context.Context) error { return o.operator.Run(ctx) }

// Ready returns a channel that is closed when all objects and indices are known and
// handlers can be called; with admission handlers, when the API servers can reach them.
// A replica that stands by is ready, too. The channel is never closed if the operator
// ends before that, so wait for the end of Run as well.
func (o *Operator) Ready() <-chan struct{} { return o.operator.Ready() }

// Run makes an operator and runs it: NewOperator and Operator.Run.
func Run(ctx context.Context, options Options) error {
	o, err := NewOperator(options)
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// Add makes an operator a part of a controller-runtime manager, beside the other
// controllers of the manager, which runs it. The operator uses the manager's connection,
// scheme, client and leader election: every replica watches the objects, and the leader
// alone handles them. The manager's webhook server serves admission handlers below
// /kopf/, unless settings.Admission has a server.
//
// Add returns an error for mistakes in the declarations and the settings, and for
// options that are the manager's: Config, Connect, Scheme, login handlers, and the
// settings for replicas, for serving metrics, and for limits of requests.
//
// Specification: Embedding.
func Add(mgr manager.Manager, options Options) (*Operator, error) {
	o, err := operator.Add(mgr, options.complete())
	if err != nil {
		return nil, err
	}
	return &Operator{o}, nil
}

// ClientFrom returns the operator's client from the context of a handler, for functions
// that handlers call. It returns nil for any other context.
func ClientFrom(ctx context.Context) client.Client { return operator.ClientFrom(ctx) }
