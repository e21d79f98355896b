package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/operator/permissions"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Options configures an operator.
type Options struct {
	// Registry contains the handlers. Default: none.
	Registry *registry.Registry
	// Mistakes are those of declarations elsewhere. They are reported with those of the Registry.
	Mistakes error
	// Settings configures the operator. Default: settings.Default.
	Settings settings.Settings
	// Config connects to the cluster. Default: the result of the login handlers; without
	// them, the same configuration as kubectl, or the service account of the pod.
	Config *rest.Config
	// Connect returns the Config on first use, if there is neither a Config nor a login
	// handler. Default: the default of Config.
	Connect func(context.Context) (*rest.Config, error)
	// Logger writes the log. Default: the logger of ctrl.SetLogger.
	Logger logr.Logger
	// Scheme contains the Go types of typed handlers and of the handlers' client.
	// Default: the built-in types of Kubernetes.
	Scheme *runtime.Scheme
	// Requests are those of the manager that the operator is added to. Default: they are not
	// observed.
	Requests *permissions.Requests
}

// Operator is one operator: its declarations and, after the startup handlers have
// succeeded, its replica. It can run once. Its exported methods are safe for concurrent
// use.
type Operator struct {
	options    Options
	handlers   registry.Handlers // of objects and admission
	activities registry.Handlers // of the operator itself
	memos      *memo.Values
	settings   settings.Settings // startup handlers can change them; final afterwards

	inManager   bool                  // of another program
	permissions *permissions.Observer // nil if the requests are not observed

	mounted bool              // the webhook server of a manager receives the reviews
	claimed atomic.Bool       // by Run, or by the manager that it is added to
	replica *future[*replica] // available when the settings are final
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

// NewOperator creates an operator, and checks the options. It has no side effects and makes
// no requests.
func NewOperator(options Options) (*Operator, error) {
	o, err := newOperator(options)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.checkConnection(), unsupportedOutsideManager(o.settings), o.checkServer()); err != nil {
		return nil, err
	}
	if options.Requests != nil {
		return nil, errors.New("Options.Permissions is for an operator that kopf.Add adds to a manager: the requests of others are observed without it")
	}
	if err := o.observe(permissions.NewRequests()); err != nil {
		return nil, err
	}
	return o, nil
}

// observe observes the requests, unless there are none to observe.
func (o *Operator) observe(requests *permissions.Requests) (err error) {
	if requests != nil {
		o.permissions, err = permissions.New(requests, o.handlers, o.options.Registry.Needs(), o.options.Logger)
	}
	return err
}

// newOperator checks the requirements of all operators, with or without a manager.
func newOperator(options Options) (*Operator, error) {
	options = options.withDefaults()
	handlers, err := options.Registry.Handlers(options.Scheme)
	if err := errors.Join(checkSettings(options.Settings), options.Mistakes, err); err != nil {
		return nil, err
	}
	return &Operator{
		options: options, handlers: handlers, activities: options.Registry.Activities(),
		memos: memo.NewValues(nil), settings: options.Settings,
		replica: newFuture[*replica](), ready: make(chan struct{}),
	}, nil
}

// Handlers returns the sorted ids of all handlers.
func (o *Operator) Handlers() []string {
	var ids []string
	for _, d := range slices.Concat(o.handlers, o.activities) {
		ids = append(ids, handler.DeclaredID(d))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func checkSettings(s settings.Settings) error {
	if mistakes := s.Validate(); mistakes != nil {
		return fmt.Errorf("the settings are invalid:\n%w", mistakes)
	}
	return nil
}

// unsupportedOutsideManager returns an error for settings that only an operator in a manager
// can have.
func unsupportedOutsideManager(s settings.Settings) error {
	if s.Health.ManagerCheck != "" {
		return errors.New("settings.Health.ManagerCheck is for an operator that kopf.Add adds to a manager: set settings.Health.Address instead")
	}
	return nil
}

// Run runs the operator until the context is done, and returns when everything has stopped.
// It returns an error if the operator cannot start or continue. It can be called once.
func (o *Operator) Run(ctx context.Context) error {
	if o.claimed.Swap(true) {
		return errors.New("the operator was already started: create a new one to run it again")
	}
	AdoptController(o.options.Logger)
	adoptClient(o.options.Logger)
	connection := newConnection(ctx, o)
	activities := o.newActivityHandlers(connection.client)
	var mgr manager.Manager
	var r *replica
	var err error
	if !o.endsInTime(ctx, func() { mgr, r, err = o.start(ctx, connection, activities) }) {
		return errNotStopped
	}
	defer connection.close()
	if err != nil {
		activities.cleanUp(ctx)
		return ignoreStop(ctx, err)
	}
	if recorded := r.engine.Recorder; recorded != nil {
		defer func() { _ = recorded.Close() }() // every line is written already
	}
	if err := r.shutDown(ctx, mgr.Start(ctx)); err != nil {
		return err
	}
	o.options.Logger.Info("The operator has stopped.")
	return nil
}

// endsInTime calls a function, and reports whether it has returned: a function that does not return
// is abandoned when the operator was asked to stop and the ShutdownTimeout is over. The function can call
// code of users that ignores its context.
func (o *Operator) endsInTime(ctx context.Context, start func()) bool {
	timeout := o.settings.WithDefaults().Execution.ShutdownTimeout
	done := make(chan struct{})
	late := make(chan struct{})
	go func() {
		defer close(done)
		start()
	}()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(timeout, func() { close(late) }) })()
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// start calls the startup handlers, connects to the cluster, and creates the replica and the
// manager that runs it.
func (o *Operator) start(ctx context.Context, c *connection, activities *activityHandlers) (manager.Manager, *replica, error) {
	if err := errors.Join(o.startUp(ctx, activities), unsupportedOutsideManager(o.settings)); err != nil {
		return nil, nil, err
	}
	mgr, err := c.newManager(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := o.newReplica(mgr, activities)
	if err != nil {
		return nil, nil, err
	}
	r.requested = ctx
	return mgr, r, addTo(mgr, everyReplica(r.run), leaderOnly(r.runLeader))
}

// ignoreStop returns nil for an error that only reports that the context is done.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// Ready returns a channel that is closed when all objects that may be listed and all indices are known, and the
// API servers can reach the admission handlers. If the operator ends before, it is never closed.
func (o *Operator) Ready() <-chan struct{} { return o.ready }

// State returns the current state of the operator. It is empty before the operator has
// started and after it has ended.
func (o *Operator) State() metrics.State {
	if r, ok := o.replica.get(); ok && !r.stopped.Load() {
		return r.engine.State()
	}
	return metrics.State{}
}

// WatchStatuses returns the watches of the operator. There are none before it has started
// and after it has ended.
func (o *Operator) WatchStatuses() []reconcile.WatchStatus {
	if r, ok := o.replica.get(); ok && !r.stopped.Load() {
		return r.engine.WatchStatuses()
	}
	return nil
}
