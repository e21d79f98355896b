package operator

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Options are what an operator consists of. Only the Registry is necessary.
type Options struct {
	// Registry has the handlers.
	Registry *registry.Registry
	// Settings tune the operator. Default: settings.Default.
	Settings settings.Settings
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

// Run runs an operator until the context is done, and returns when nothing of it goes
// on. An error tells why it could not be started, or could not go on.
func Run(ctx context.Context, options Options) error {
	options = options.withDefaults()
	o, err := newOperator(options, options.Scheme)
	if err != nil {
		return err
	}
	connection := newConnection(ctx, o)
	defer connection.close()
	o.client = connection.client
	mgr, err := o.managed(ctx, connection)
	if err != nil {
		o.cleanUp(ctx)
		return stopped(ctx, err)
	}
	err = o.end(ctx, mgr.Start(ctx))
	if err == nil {
		options.Logger.Info("The operator has stopped.")
	}
	return err
}

// managed starts the operator up, and makes the manager that runs the rest of it.
func (o *operator) managed(ctx context.Context, c *connection) (manager.Manager, error) {
	if err := o.startUp(ctx); err != nil {
		return nil, err
	}
	mgr, err := c.manager()
	if err != nil {
		return nil, err
	}
	return mgr, o.join(mgr)
}

// stopped is no error, if it is only that somebody has stopped the operator.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

func (o Options) withDefaults() Options {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Logger.GetSink() == nil {
		o.Logger = ctrl.Log
	}
	return o
}
