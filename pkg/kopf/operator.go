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

// Options are what an operator that is run by Run consists of. Every field has a
// default.
type Options struct {
	// Registry has the handlers. Default: DefaultRegistry.
	Registry *Registry
	// Settings tune the operator. Default: settings.Default.
	Settings Settings
	// Config reaches the cluster. Default: what the login handlers return; without
	// any, as kubectl does it, or the service account of the pod.
	Config *rest.Config
	// Connect finds the Config when it is first needed, if there is none and nobody
	// logs in. Default: it is found as the Config is.
	Connect func(context.Context) (*rest.Config, error)
	// Logger takes the log. Default: what ctrl.SetLogger was given.
	Logger logr.Logger
	// Scheme knows the Go types of typed handlers and of the handlers' client.
	// Default: the built-in types of Kubernetes.
	Scheme *runtime.Scheme
	// Ready is closed when all objects are known and handlers can be called.
	// Default: nobody is told.
	Ready chan<- struct{}
}

// Run runs an operator until the context is done. It returns when all handlers
// have returned: by themselves within the grace period, or because their context
// was cancelled after it. It returns an error if the operator could not be
// started, or could not go on; the mistakes in the declarations of the handlers
// are found before anything is started. An operator that loses its Lease is at an
// end: its handlers are cancelled at once, and Run returns an error.
//
// Run does not listen to signals, and several operators can run in one process,
// each with its own registry.
//
// Specification: Embedding.
func Run(ctx context.Context, options Options) error {
	o, err := operator.NewOperator(operator.Options{
		Registry: options.Registry.declared(), Settings: options.Settings, Config: options.Config, Connect: options.Connect,
		Logger: options.Logger, Scheme: options.Scheme,
	})
	if err != nil {
		return err
	}
	if options.Ready != nil {
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-o.Ready():
				close(options.Ready)
			case <-ended:
			}
		}()
	}
	return o.Run(ctx)
}

// Add makes the handlers of a registry a part of a manager that is there
// already, beside its other controllers. They use the manager's connection,
// scheme, client, logger and leader election: every replica watches the objects,
// and the leader alone handles them. Admission handlers are served by the manager's
// webhook server below /kopf/, unless settings.Admission has a server.
//
// A nil registry is the default one. The mistakes in the declarations and the
// settings, and what only an operator of its own can have, are errors at once.
func Add(mgr manager.Manager, r *Registry, s Settings) error {
	_, err := operator.Add(mgr, operator.Options{Registry: r.declared(), Settings: s, Logger: mgr.GetLogger().WithName("kopf")})
	return err
}

// ClientFrom returns the operator's client from the context of a handler, for
// functions that are called by handlers; nil outside of one.
func ClientFrom(ctx context.Context) client.Client { return operator.ClientFrom(ctx) }
