package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/health/access"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/page"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// newPage returns the page of the operator, or nil if it is not served. It shows what the operator may see to all who may
// look at it, and has no requests: they would be sent with the permissions of the operator.
func (r *replica) newPage(mgr manager.Manager, connected *http.Client) (*page.Page, error) {
	if r.settings.Page.Address == "" {
		return nil, nil //nolint:nilnil // it is not wanted
	}
	filter, err := access.New(mgr.GetConfig(), connected)
	if err != nil {
		return nil, err
	}
	o := r.operator
	cluster, err := inspect.New(mgr.GetConfig(), inspect.Program{
		Handlers: o.handlers, Needs: o.options.Registry.Needs(), Conversions: o.conversions,
		Settings: r.settings, Scheme: mgr.GetScheme(), IsRunning: true,
	})
	if err != nil {
		return nil, err
	}
	cluster.CommandLine.Pattern = filepath.Base(os.Args[0]) + " " + inspect.CommandPlaceholder
	options := page.Options{
		Name: r.settings.Name, Cluster: cluster, Running: ownActivity{r},
		Access: func(ctx context.Context, token string) (int, error) {
			status, err := filter.Authorize(ctx, token, http.MethodGet, page.AccessPath)
			if err != nil {
				r.logger.Error(err, "It is unknown who may look at the page.")
			}
			return status, err
		},
	}
	if cluster.HasLeases() {
		options.LeaseNamespace = r.settings.Replicas.LeaseNamespace
	}
	return page.New(options), nil
}

// ownActivity says what this process is doing.
type ownActivity struct{ replica *replica }

// Activity returns what the replica is doing, also for an object.
func (o ownActivity) Activity(_ context.Context, key object.Key, uid types.UID) (*reconcile.Activity, error) {
	a := o.replica.activityOf(key, uid)
	return &a, nil
}

// Place says that no other operator was asked.
func (ownActivity) Place() string { return "this page" }

// servePage serves the page until the context is done.
func (r *replica) servePage(ctx context.Context) error {
	s := r.settings.Page
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("the page cannot listen on %q; choose another settings.Page.Address: %w", s.Address, err)
	}
	// With HTTP/2, on purpose: each open page keeps a stream, and browsers open few connections.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.CertFile == "" {
		host, _ := os.Hostname() // the name of the pod; any other is as good
		certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, []string{host})
		if err != nil {
			return fmt.Errorf("the page has no certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("the page has no certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	} else {
		watcher, err := certwatcher.New(s.CertFile, s.KeyFile)
		if err != nil {
			return fmt.Errorf("the page cannot read its certificate (settings.Page.CertFile and KeyFile): %w", err)
		}
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _ = watcher.Start(watching) }() // it then keeps the certificate that it has
		config.GetCertificate = watcher.GetCertificate
	}
	r.logger.Info("The page is served to accounts that may get the path "+page.AccessPath+".", "address", listener.Addr().String())
	if err := r.page.Serve(ctx, tls.NewListener(listener, config)); err != nil {
		return fmt.Errorf("the page failed: %w", err)
	}
	return nil
}
