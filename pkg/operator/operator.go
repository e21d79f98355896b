package operator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Options are what an operator is made of.
type Options struct {
	// Registry has the handlers. Default: none.
	Registry *registry.Registry
	// Settings tune the operator. Default: settings.Default.
	Settings settings.Settings
	// Config connects to the cluster. Default: what the login handlers return; without
	// any, as kubectl does it, or the service account of the pod.
	Config *rest.Config
	// Connect finds the Config when it is first needed, if there is neither a Config nor
	// a login handler. Default: it is found as the Config is.
	Connect func(context.Context) (*rest.Config, error)
	// Logger takes the log. Default: what ctrl.SetLogger was given.
	Logger logr.Logger
	// Scheme knows the Go types of typed handlers and of the handlers' client.
	// Default: the built-in types of Kubernetes.
	Scheme *runtime.Scheme
}

// Operator is one operator: its declarations at first, and its replica since the
// startup handlers have succeeded. It lives once. Its exported methods are safe for
// concurrent use.
type Operator struct {
	options    Options
	handlers   registry.Handlers // of objects and of admission
	activities registry.Handlers // of the operator as a whole
	memos      *memo.Values
	settings   settings.Settings // startup handlers change them; final after that

	mounted bool              // the reviews, on the webhook server of a manager
	claimed atomic.Bool       // by Run, or by the manager that it is added to
	replica *future[*replica] // exists when the settings are final
	ready   chan struct{}     // closed by the replica
}

func (o Options) withDefaults() Options {
	if o.Registry == nil {
		o.Registry = &registry.Registry{}
	}
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Logger.GetSink() == nil {
		o.Logger = ctrl.Log
	}
	return o
}

// NewOperator checks everything that can be checked before anything starts. It has no
// effects, and makes no requests.
func NewOperator(options Options) (*Operator, error) {
	o, err := newOperator(options)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.checkConnection(), unsupportedOutsideManager(o.settings)); err != nil {
		return nil, err
	}
	return o, nil
}

// newOperator checks what every operator needs, with or without a manager.
func newOperator(options Options) (*Operator, error) {
	options = options.withDefaults()
	handlers, err := options.Registry.Handlers(options.Scheme)
	if err := errors.Join(checkSettings(options.Settings), err); err != nil {
		return nil, err
	}
	return &Operator{
		options: options, handlers: handlers, activities: options.Registry.Activities(),
		memos: memo.NewValues(nil), settings: options.Settings,
		replica: newFuture[*replica](), ready: make(chan struct{}),
	}, nil
}

func checkSettings(s settings.Settings) error {
	if mistakes := s.Validate(); mistakes != nil {
		return fmt.Errorf("the settings cannot be used:\n%w", mistakes)
	}
	return nil
}

// unsupportedOutsideManager returns an error that names the settings that only an
// operator in a manager can have.
func unsupportedOutsideManager(s settings.Settings) error {
	if s.Health.ManagerCheck != "" {
		return errors.New("settings.Health.ManagerCheck is for an operator that kopf.Add adds to a manager: set settings.Health.Address instead")
	}
	return nil
}

// Run runs the operator until the context is done, and returns when nothing of it runs
// any longer. It returns an error if the operator cannot start or cannot go on. It can
// be called once.
func (o *Operator) Run(ctx context.Context) error {
	if o.claimed.Swap(true) {
		return errors.New("the operator has been started already: to run it again, make a new one")
	}
	connection := newConnection(ctx, o)
	defer connection.close()
	activities := o.newActivityHandlers(connection.client)
	mgr, r, err := o.start(ctx, connection, activities)
	if err != nil {
		activities.cleanUp(ctx)
		return ignoreStop(ctx, err)
	}
	if err := r.shutDown(ctx, mgr.Start(ctx)); err != nil {
		return err
	}
	o.options.Logger.Info("The operator has stopped.")
	return nil
}

// start calls the startup handlers, connects to the cluster, and builds the replica and
// the manager that runs it.
func (o *Operator) start(ctx context.Context, c *connection, activities *activityHandlers) (manager.Manager, *replica, error) {
	if err := errors.Join(o.startUp(ctx, activities), unsupportedOutsideManager(o.settings)); err != nil {
		return nil, nil, err
	}
	mgr, err := c.newManager()
	if err != nil {
		return nil, nil, err
	}
	r, err := o.newReplica(mgr, activities)
	if err != nil {
		return nil, nil, err
	}
	return mgr, r, addTo(mgr, everyReplica(r.run), everyReplica(r.monitor.serveHealth), leaderOnly(r.runLeader))
}

// ignoreStop returns nil for an error that only says that the context is done.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// Ready returns a channel that is closed when all objects and indices are known, and
// the API servers can reach the admission handlers. It is never closed if the operator
// ends before that.
func (o *Operator) Ready() <-chan struct{} { return o.ready }

// State returns what the operator is doing now: nothing before it is started, and when
// it has ended.
func (o *Operator) State() metrics.State {
	if r, ok := o.replica.get(); ok && !r.stopped.Load() {
		return r.engine.State()
	}
	return metrics.State{}
}

// WatchStatuses returns the watches of the operator; none before it is started, and when it
// has ended.
func (o *Operator) WatchStatuses() []reconcile.WatchStatus {
	if r, ok := o.replica.get(); ok && !r.stopped.Load() {
		return r.engine.WatchStatuses()
	}
	return nil
}
