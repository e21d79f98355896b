package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/internal/program"
	"github.com/kopf-go/kopf/pkg/internal/window"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/settings"
)

// connection connects an operator without a foreign manager to the cluster on first use: by
// a startup handler that needs the client, or by the manager.
type connection struct {
	operator    *Operator
	client      func() client.Client         // for the handlers of the operator itself
	base        func() (*rest.Config, error) // before applying the settings
	credentials *login.Credentials           // nil without a login
}

// checkConnection returns an error if there are several ways to find the cluster.
func (o *Operator) checkConnection() error {
	var mistakes []error
	for _, d := range o.activities.OfKind(handler.OnLogin) {
		const conflict = "%s has no effect, because the login handler %q (%s) connects the operator: leave out one of them"
		if o.options.Config != nil {
			mistakes = append(mistakes, fmt.Errorf(conflict, "Options.Config", d.ID, d.DeclaredAt))
		}
		if o.options.Connect != nil {
			mistakes = append(mistakes, fmt.Errorf(conflict, "Options.Connect", d.ID, d.DeclaredAt))
		}
	}
	if o.options.Config != nil && o.options.Connect != nil {
		mistakes = append(mistakes, errors.New("Options.Connect has no effect, because Options.Config is set: leave out one of them"))
	}
	return errors.Join(mistakes...)
}

// newConnection returns the connection of an operator. The context is the operator's.
func newConnection(ctx context.Context, o *Operator) *connection {
	o.window = window.New(settings.DefaultMaxInFlight)
	c := &connection{operator: o}
	c.base = sync.OnceValues(func() (*rest.Config, error) { return c.connect(ctx) })
	c.client = sync.OnceValue(c.newClient)
	return c
}

// newClient returns the client for the handlers of the operator itself, or nil if no cluster
// is available.
func (c *connection) newClient() client.Client {
	config, err := c.config()
	if err == nil {
		var made client.Client
		made, err = liveClient(c.operator.options.Logger)(config, client.Options{Scheme: c.operator.options.Scheme})
		if err == nil {
			return made
		}
	}
	c.operator.options.Logger.Error(err, "There is no client for the handlers of the operator.")
	return nil
}

// connect finds the cluster with the login handlers, with the options, or in the same way as
// kubectl.
func (c *connection) connect(ctx context.Context) (*rest.Config, error) {
	options := c.operator.options
	hasLogin := len(c.operator.activities.OfKind(handler.OnLogin)) > 0
	switch {
	case hasLogin:
		credentials, err := login.New(ctx, login.Options{Login: c.operator.logIn, Logger: options.Logger.WithName("login")})
		if err != nil {
			return nil, fmt.Errorf("the operator cannot log in: %w", err)
		}
		c.credentials = credentials
		return credentials.Config(), nil
	case options.Config != nil:
		return options.Config, nil
	case options.Connect != nil:
		var config *rest.Config
		err := handler.WithRecover(func() (err error) {
			config, err = options.Connect(ctx)
			return err
		})
		return config, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: set KUBECONFIG, or use --kubeconfig: %w", err)
	}
	return config, nil
}

// close ends the login after everything that needs the cluster.
func (c *connection) close() {
	if c.credentials != nil {
		c.credentials.Close()
	}
}

// config connects to the cluster with the current settings.
func (c *connection) config() (*rest.Config, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	s := c.operator.settings.WithDefaults()
	n := s.Networking
	config := rest.CopyConfig(base)
	config.QPS = n.QPS
	config.Burst = n.Burst
	// Do not modify client-go's default, which shares connections between clients.
	if config.Dial == nil && n.ConnectTimeout != settings.DefaultConnectTimeout {
		config.Dial = (&net.Dialer{Timeout: n.ConnectTimeout, KeepAlive: keepAlive}).DialContext
	}
	// What client-go says about the program, and this library. The API server takes the name of the
	// program for the field manager of writes that name none: those of handlers.
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent() + " kopf-go"
		if _, version := program.Versions(); strings.HasPrefix(version, "v") {
			config.UserAgent += "/" + version
		}
	}
	c.operator.permissions.Observe(config, s)
	if n.MaxInFlight > 0 {
		c.operator.window.Limit(n.MaxInFlight)
		config.Wrap(c.operator.window.Wrap) // around the observer, so that nothing below it waits
	}
	return config, nil
}

// liveClient returns a client that reads from the API server, so that a Get in a handler
// never starts to watch an entire resource unexpectedly. It is a client.WithWatch.
func liveClient(logger logr.Logger) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		options.Cache = nil
		options.Log = logger
		return client.NewWithWatch(config, options)
	}
}

// keepAlive is the interval at which client-go checks silent connections.
const keepAlive = 30 * time.Second

// newManager returns a manager that runs only the operator. The values of the context reach
// the handlers; the manager decides when their contexts end.
func (c *connection) newManager(ctx context.Context) (manager.Manager, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	s := c.operator.settings.WithDefaults()
	logger := c.operator.options.Logger
	options := manager.Options{
		Scheme:                  c.operator.options.Scheme,
		Logger:                  quiet(logger.WithName("manager")),
		Metrics:                 metricsOptions(s.Metrics),
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: new(s.Execution.ShutdownTimeout),
		Controller:              crconfig.Controller{SkipNameValidation: new(true)},
		NewClient:               liveClient(logger.WithName("client")),
		BaseContext:             func() context.Context { return context.WithoutCancel(ctx) },
	}
	if r := s.Replicas; r.LeaderElection {
		options.LeaderElection = true
		options.LeaderElectionID = r.LeaseName
		options.LeaderElectionNamespace = r.LeaseNamespace
		options.LeaseDuration = &r.LeaseDuration
		options.RenewDeadline = &r.RenewDeadline
		options.RetryPeriod = &r.RetryPeriod
		// The next leader can start immediately: this one has stopped by then.
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := ctrl.NewManager(config, options)
	switch {
	case err == nil:
		return mgr, nil
	case s.Replicas.LeaderElection && s.Replicas.LeaseNamespace == "":
		return nil, fmt.Errorf("the operator cannot be set up: outside a cluster, set settings.Replicas.LeaseNamespace (--lease-namespace): %w", err)
	default:
		return nil, fmt.Errorf("the operator cannot be set up: %w", err)
	}
}

// addTo adds the work of every replica and that of the leader to a manager. A function returns when
// the context is done and its work has stopped, or when it fails.
func addTo(mgr manager.Manager, everyReplica, leader func(context.Context) error) error {
	for _, r := range []runnable{{everyReplica, false}, {leader, true}} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("the operator cannot be added to the manager: %w", err)
		}
	}
	return nil
}

// runnable is a task of a manager.
type runnable struct {
	run       func(context.Context) error
	forLeader bool
}

// Start runs it.
func (r runnable) Start(ctx context.Context) error { return r.run(ctx) }

// NeedLeaderElection reports whether the manager must wait for the leadership.
func (r runnable) NeedLeaderElection() bool { return r.forLeader }

// connected returns the HTTP client for the requests of the operator itself. They pass the window of the
// operator: with the manager of another program, all of them and no others, because the connection
// belongs to that program.
func (o *Operator) connected(mgr manager.Manager, s settings.Settings) *http.Client {
	if !o.inManager || s.Networking.MaxInFlight <= 0 {
		return mgr.GetHTTPClient()
	}
	o.window = window.New(s.Networking.MaxInFlight)
	shared := *mgr.GetHTTPClient()
	next := shared.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	shared.Transport = o.window.Wrap(next)
	return &shared
}
