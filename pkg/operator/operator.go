package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/internal/window"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/operator/permissions"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/tracing"
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
	// Tracer makes spans. Default: none.
	Tracer tracing.Tracer
	// Requests are those of the manager that the operator is added to. Default: they are not
	// observed.
	Requests *permissions.Requests
}

// Operator is one operator: its declarations and, after the startup handlers have
// succeeded, its replica. It can run once. Its exported methods are safe for concurrent
// use.
type Operator struct {
	options     Options
	handlers    registry.Handlers // of objects and admission
	activities  registry.Handlers // of the operator itself
	conversions conversion.Set    // of objects between versions
	memos       *memo.Values
	settings    settings.Settings // startup handlers can change them; final afterwards

	inManager   bool                  // of another program
	mounted     bool                  // the webhook server of a manager receives the reviews
	permissions *permissions.Observer // nil if the requests are not observed
	window      *window.Window        // of its requests
	claimed     atomic.Bool           // by Run, or by the manager that it is added to

	client         func() client.Client // for the handlers of the operator itself
	hasStarted     bool                 // the startup handlers have succeeded
	cleaning       sync.Once            // calls the cleanup handlers
	cleanupIgnored bool                 // a cleanup handler has not returned, as known after cleanUp

	replica    atomic.Pointer[replica] // nil until the settings are final
	hasReplica chan struct{}           // closed when there is one
	ready      chan struct{}           // closed by the replica
}

// NewOperator creates an operator, and checks the options. It has no side effects and makes
// no requests.
func NewOperator(options Options) (*Operator, error) {
	o, err := newOperator(options)
	if err := errors.Join(err, o.checkConnection(), unsupportedOutsideManager(o.settings), o.checkServer()); err != nil {
		return nil, err
	}
	if options.Requests != nil {
		return nil, errors.New("Options.Permissions is for an operator that kopf.Add adds to a manager: the requests of others are observed without it")
	}
	o.permissions, err = permissions.New(permissions.NewRequests(), o.handlers, o.conversions, o.options.Registry.Needs(), o.options.Logger)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// newOperator checks the requirements of all operators, with or without a manager. It returns the
// operator also with an error, so that the caller can look for more mistakes.
func newOperator(options Options) (*Operator, error) {
	options = options.withDefaults()
	handlers, mistakes := options.Registry.Handlers(options.Scheme)
	o := &Operator{
		options: options, handlers: handlers, activities: options.Registry.Activities(), conversions: options.Registry.Conversions(options.Scheme),
		memos: memo.NewValues(nil), settings: options.Settings,
		hasReplica: make(chan struct{}), ready: make(chan struct{}),
	}
	mistakes = errors.Join(checkSettings(options.Settings), options.Mistakes, mistakes)
	if len(o.activities.OfKind(handler.OnStartup)) == 0 { // they can still set the name that handlers need
		mistakes = errors.Join(mistakes, handlers.CheckName(options.Settings.Name), options.Settings.CheckShardName())
	}
	return o, mistakes
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

func checkSettings(s settings.Settings) error {
	mistakes := s.Validate()
	if mistakes != nil {
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
	o.client = connection.client
	var mgr manager.Manager
	var r *replica
	var err error
	if !o.endsInTime(ctx, func() { mgr, r, err = o.start(ctx, connection) }) {
		return errNotStopped
	}
	defer connection.close()
	if err != nil {
		o.cleanUp(ctx)
		return ignoreStop(ctx, err)
	}
	if r.engine.Recorder != nil {
		defer func() { _ = r.engine.Recorder.Close() }() // every line is written already
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
	go func() {
		defer close(done)
		start()
	}()
	late, stop := after(ctx, timeout)
	defer stop()
	select {
	case <-done:
		return true
	case <-late:
		return false
	}
}

// start calls the startup handlers, connects to the cluster, and creates the replica and the
// manager that runs it.
func (o *Operator) start(ctx context.Context, c *connection) (manager.Manager, *replica, error) {
	if err := errors.Join(o.startUp(ctx), unsupportedOutsideManager(o.settings)); err != nil {
		return nil, nil, err
	}
	mgr, err := c.newManager(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := o.newReplica(mgr)
	if err != nil {
		return nil, nil, err
	}
	r.requested = ctx
	return mgr, r, addTo(mgr, r.run, r.runLeader)
}

// ignoreStop returns nil for an error that only reports that the context is done.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// Add adds an operator to the manager of another program. The operator uses the manager's
// connection, scheme, client, and leader election, and runs when the manager runs.
func Add(mgr manager.Manager, options Options) (*Operator, error) {
	if err := unsupportedOptions(mgr, options); err != nil {
		return nil, err
	}
	options.Scheme = mgr.GetScheme()
	if options.Logger.GetSink() == nil {
		options.Logger = mgr.GetLogger().WithName("kopf")
	}
	o, err := newOperator(options)
	if err != nil {
		return nil, err
	}
	o.inManager = true
	o.claimed.Store(true)
	o.client = mgr.GetClient
	adoptClient(options.Logger)
	mistakes := []error{o.unsupportedInManager()}
	login := o.activities.OfKind(handler.OnLogin)
	if len(login) > 0 {
		mistakes = append(mistakes, fmt.Errorf("%s: the login handler %q cannot be used in a manager, which is connected already: make the manager with the Config of a login.Credentials, or use kopf.Run", login[0].DeclaredAt, login[0].ID))
	}
	if options.Requests != nil {
		o.permissions, err = permissions.New(options.Requests, o.handlers, o.conversions, o.options.Registry.Needs(), o.options.Logger)
		mistakes = append(mistakes, err)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	if err := errors.Join(o.mount(mgr), o.addReadyzCheck(mgr)); err != nil {
		return nil, err
	}
	return o, addTo(mgr,
		func(ctx context.Context) error { return o.runIn(ctx, mgr) },
		func(ctx context.Context) error {
			select {
			case <-o.hasReplica:
				return o.replica.Load().runLeader(ctx)
			case <-ctx.Done():
				return nil
			}
		},
	)
}

// runIn starts the operator in a running manager, and runs it until the context is done.
func (o *Operator) runIn(ctx context.Context, mgr manager.Manager) error {
	defer o.cleanUp(ctx)
	if err := errors.Join(o.startUp(ctx), o.unsupportedInManager()); err != nil {
		return ignoreStop(ctx, err)
	}
	if o.settings.Replicas.Shards > 0 {
		if err := refuseElection(ctx, mgr.Elected()); err != nil {
			return ignoreStop(ctx, err)
		}
	}
	o.permissions.Begin(o.settings.WithDefaults())
	r, err := o.newReplica(mgr)
	if err != nil {
		return ignoreStop(ctx, err)
	}
	return r.run(ctx)
}

// unsupportedOptions returns an error that lists the options that the manager determines.
func unsupportedOptions(mgr manager.Manager, options Options) error {
	var mistakes []error
	if options.Config != nil {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have Options.Config: pass it to ctrl.NewManager"))
	}
	if options.Connect != nil {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have Options.Connect: pass a rest.Config to ctrl.NewManager"))
	}
	if options.Scheme != nil && options.Scheme != mgr.GetScheme() {
		mistakes = append(mistakes, errors.New("an operator in a manager cannot have another Options.Scheme: add the types to the scheme of the manager"))
	}
	return errors.Join(mistakes...)
}

// unsupportedInManager returns an error that lists the settings that the manager determines
// or needs before it starts.
func (o *Operator) unsupportedInManager() error {
	s := o.settings.WithDefaults()
	defaults := settings.Settings{Name: o.settings.Name}.WithDefaults()
	var mistakes []error
	for _, setting := range []struct {
		isSet         bool
		name, instead string
	}{
		{s.Replicas.LeaderElection, "Replicas.LeaderElection", "set LeaderElection and LeaderElectionID in the options of the manager"},
		{s.Replicas.Shards == 0 && s.Replicas != defaults.Replicas, "Replicas", "set LeaderElection and LeaderElectionID in the options of the manager"},
		{s.Metrics.Address != defaults.Metrics.Address, "Metrics.Address", "set Metrics in the options of the manager"},
		{s.Metrics.Secure != defaults.Metrics.Secure, "Metrics.Secure", "set Metrics in the options of the manager"},
		{s.Networking.QPS != defaults.Networking.QPS, "Networking.QPS", "set QPS in the rest.Config of the manager"},
		{s.Networking.Burst != defaults.Networking.Burst, "Networking.Burst", "set Burst in the rest.Config of the manager"},
		{s.Permissions.LearnFile != "" && o.options.Requests == nil, "Permissions.LearnFile", "observe the connection by kopf.ObservePermissions before you make the manager, and pass what it returns as Options.Permissions"},
		{s.Health.ManagerCheck != o.options.Settings.Health.ManagerCheck, "Health.ManagerCheck from a startup handler", "set it before kopf.Add"},
	} {
		if setting.isSet {
			mistakes = append(mistakes, fmt.Errorf("an operator in a manager cannot have settings.%s: %s", setting.name, setting.instead))
		}
	}
	return errors.Join(mistakes...)
}

// reviewsPath is the path of the reviews on the webhook server of a manager, which can have
// other webhooks.
const reviewsPath = "/kopf"

// mount serves the reviews on the webhook server of the manager, unless the settings have a
// server. Reviews before the start of the operator are rejected; the API server then applies the
// failure policy of the webhook.
func (o *Operator) mount(mgr manager.Manager) error {
	a := o.settings.Admission
	switch {
	case !o.isCalled() || a.Server != nil:
		return nil
	case a.Managed != "":
		return errors.New("settings.Admission.Managed requires settings.Admission.Server, so that the API servers can reach the admission handlers: " +
			"servers.Mounted for the webhook server of the manager, servers.Server for a separate one")
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r := o.replica.Load()
		if r == nil {
			http.Error(w, "the operator has not started yet", http.StatusServiceUnavailable)
			return
		}
		r.reviews.ServeHTTP(w, request)
	})
	err := handler.WithRecover(func() error { // the server panics if the path is taken
		mgr.GetWebhookServer().Register(reviewsPath+"/", http.StripPrefix(reviewsPath, serve))
		return nil
	})
	if err != nil {
		return fmt.Errorf("the admission handlers cannot be served at %s by the webhook server of the manager, "+
			"most likely because another operator is: give one of them a Settings.Admission.Server: %w", reviewsPath, err)
	}
	o.mounted = true
	return nil
}

// addReadyzCheck adds the readiness of the operator to the manager, if the settings name a
// check.
func (o *Operator) addReadyzCheck(mgr manager.Manager) error {
	name := o.options.Settings.Health.ManagerCheck
	if name == "" {
		return nil
	}
	err := mgr.AddReadyzCheck(name, func(request *http.Request) error {
		r := o.replica.Load()
		if r == nil {
			return errors.New("the operator has not started yet")
		}
		return health.ReadyCheck(r.health(), r.settings.Health.MaxQueueAge)(request)
	})
	if err != nil {
		return fmt.Errorf("the check %q (settings.Health.ManagerCheck) cannot be added to the manager: %w", name, err)
	}
	return nil
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

// Ready returns a channel that is closed when all objects that may be listed and all indices are known, and the
// API servers can reach the admission handlers. With conversions, the objects are also known as they are converted, unless
// the replica may stand by. If the operator ends before, the channel is never closed.
func (o *Operator) Ready() <-chan struct{} { return o.ready }

// State returns the current state of the operator. It is empty before the operator has
// started and after it has ended.
func (o *Operator) State() metrics.State {
	r := o.replica.Load()
	if r == nil || r.stopped.Load() {
		return metrics.State{}
	}
	return r.engineState()
}

// WatchStatuses returns the watches of the operator. There are none before it has started
// and after it has ended.
func (o *Operator) WatchStatuses() []reconcile.WatchStatus {
	r := o.replica.Load()
	if r == nil || r.stopped.Load() {
		return nil
	}
	return r.engine.WatchStatuses()
}

// after returns a channel that is closed some time after the context is done, unless it is stopped.
func after(ctx context.Context, delay time.Duration) (late <-chan struct{}, stop func() bool) {
	over := make(chan struct{})
	return over, context.AfterFunc(ctx, func() { time.AfterFunc(delay, func() { close(over) }) })
}
