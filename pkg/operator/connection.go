package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/settings"
)

// connection is what an operator of its own has of the cluster. Nothing is called
// before somebody asks.
type connection struct {
	options  Options
	settings *settings.Settings // as they are when somebody asks
	login    func(context.Context) (map[string]*login.Connection, error)

	client      func() client.Client
	base        func() (*rest.Config, error)
	credentials *login.Credentials // nil: nobody has logged in
}

// newConnection makes the connection of an operator. The context is that of the
// operator.
func newConnection(ctx context.Context, o *operator) *connection {
	c := &connection{options: o.options, settings: &o.settings}
	if handlers := o.activities.Of(handler.OnLogin); len(handlers) > 0 {
		c.login = func(ctx context.Context) (map[string]*login.Connection, error) { return o.logIn(ctx, handlers) }
	}
	c.base = sync.OnceValues(func() (*rest.Config, error) { return c.connect(ctx) })
	c.client = sync.OnceValue(c.newClient)
	return c
}

// newClient makes what the handlers of the operator as a whole talk to the cluster
// with; nil if there is no cluster.
func (c *connection) newClient() client.Client {
	config, err := c.config()
	if err == nil {
		var made client.Client
		if made, err = liveClient(c.options.Logger)(config, client.Options{Scheme: c.options.Scheme}); err == nil {
			return made
		}
	}
	c.options.Logger.Error(err, "There is no client for the handlers of the operator.")
	return nil
}

// connect finds the cluster: by the login handlers, by the options, or as kubectl
// does it.
func (c *connection) connect(ctx context.Context) (*rest.Config, error) {
	switch {
	case c.login != nil && c.options.Config != nil:
		return nil, errors.New("there are login handlers and Options.Config: leave the latter out, or do not declare the former")
	case c.login != nil:
		credentials, err := login.New(ctx, login.Options{Login: c.login, Logger: c.options.Logger.WithName("login")})
		if err != nil {
			return nil, fmt.Errorf("the operator cannot log in: %w", err)
		}
		c.credentials = credentials
		return credentials.Config(), nil
	case c.options.Config != nil:
		return c.options.Config, nil
	case c.options.Connect != nil:
		return c.options.Connect(ctx)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: set KUBECONFIG, or use --kubeconfig: %w", err)
	}
	return config, nil
}

// close ends the login, when nothing is asked of the cluster any longer.
func (c *connection) close() {
	if c.credentials != nil {
		c.credentials.Close()
	}
}

// config reaches the cluster.
func (c *connection) config() (*rest.Config, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	return limited(base, c.settings.WithDefaults().Networking), nil
}

// liveClient reads from the API server, so that a Get in a handler never starts
// to watch a whole resource behind the developer's back.
func liveClient(logger logr.Logger) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		options.Cache, options.Log = nil, logger
		return client.New(config, options)
	}
}

// keepAlive is how often client-go looks whether a silent connection is alive.
const keepAlive = 30 * time.Second

// limited applies the settings of the operator to its connection.
func limited(config *rest.Config, n settings.Networking) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = n.QPS, n.Burst
	if config.Dial == nil && n.ConnectTimeout != settings.DefaultConnectTimeout { // which is client-go's, and lets clients share connections
		config.Dial = (&net.Dialer{Timeout: n.ConnectTimeout, KeepAlive: keepAlive}).DialContext
	}
	if config.UserAgent == "" {
		config.UserAgent = "kopf-go"
	}
	return config
}
