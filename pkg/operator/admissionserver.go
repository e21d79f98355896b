package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// admissionServer is the server of the settings (Admission.Server), with the webhook
// configurations that refer to it.
type admissionServer struct {
	server         settings.AdmissionServer
	endpoint       settings.AdmissionEndpoint // of the cluster, without its handler
	configurations *configurations.Manager
	logger         logr.Logger

	certificate atomic.Pointer[func(*tls.ClientHelloInfo) (*tls.Certificate, error)] // nil until the server reports it
	publishOnce sync.Once
	published   chan struct{} // closed when the address is published
}

func newAdmissionServer(server settings.AdmissionServer, mgr manager.Manager, s settings.Settings, logger logr.Logger) (*admissionServer, error) {
	// A separate client, because the scheme of the operator may not contain the types.
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("the client for the admission configurations cannot be created: %w", err)
	}
	live = client.WithFieldOwner(live, fieldManager(s))
	endpoint, err := configurations.NewEndpoint(mgr.GetConfig(), live)
	if err != nil {
		return nil, err
	}
	return &admissionServer{
		server: server, endpoint: endpoint, logger: logger, published: make(chan struct{}),
		configurations: configurations.NewManager(live, configurations.OptionsFor(s, podNamespace(), leaseOf(s.Replicas)), logger),
	}, nil
}

// serve serves reviews until the context is done.
func (a *admission) serve(ctx context.Context, reviews http.Handler) error {
	if a == nil || a.server == nil {
		return nil
	}
	select {
	case <-a.reached: // servers can need the API server, as for their certificate
		return a.server.receive(ctx, reviews)
	case <-ctx.Done():
		return nil
	}
}

// receive runs the server. When the context is done, it gives running reviews some time, and
// then cancels them.
func (s *admissionServer) receive(ctx context.Context, reviews http.Handler) error {
	answering, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(reserve, abandon) })()
	endpoint := s.configurations.Endpoint(cancelWith(answering, reviews), s.endpoint)
	endpoint.ReportCertificate = func(current func(*tls.ClientHelloInfo) (*tls.Certificate, error)) { s.certificate.Store(&current) }
	publish := endpoint.Publish
	endpoint.Publish = func(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
		err := publish(ctx, config)
		if err == nil {
			s.publishOnce.Do(func() { close(s.published) })
		}
		return err
	}
	err := handler.WithRecover(func() error { return s.server.Serve(log.IntoContext(ctx, s.logger), endpoint) })
	err = handler.Readable(err)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the admission server (Settings.Admission.Server) has failed: %w", err)
	}
	return nil
}

// cancelWith cancels unanswered requests when the context is done.
func cancelWith(answering context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(answering, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// certificateExpiry returns when the certificate of the server expires. It is zero without a
// server that reports its certificate.
func (a *admission) certificateExpiry() time.Time {
	if a == nil || a.server == nil {
		return time.Time{}
	}
	current := a.server.certificate.Load()
	if current == nil {
		return time.Time{}
	}
	var certificate *tls.Certificate
	err := handler.WithRecover(func() (err error) { // it can be that of a server of the user
		certificate, err = (*current)(&tls.ClientHelloInfo{})
		return err
	})
	if err != nil || certificate == nil || len(certificate.Certificate) == 0 {
		return time.Time{}
	}
	if leaf := certificate.Leaf; leaf != nil {
		return leaf.NotAfter
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// isPublished reports whether the API servers can reach the admission handlers.
func (a *admission) isPublished() bool {
	if a == nil || a.server == nil {
		return true
	}
	select {
	case <-a.server.published:
		return true
	default:
		return false
	}
}

// waitPublished waits until the API servers can reach the admission handlers. It
// returns false if the context is done first.
func (a *admission) waitPublished(ctx context.Context) bool {
	if a == nil || a.server == nil {
		return true
	}
	select {
	case <-a.server.published:
		return true
	case <-ctx.Done():
		return false
	}
}

// unpublishTimeout limits how long removing the webhooks can take.
const unpublishTimeout = 10 * time.Second

// maintain keeps the configurations up to date while a leader works, and cleans them up
// afterwards, unless they stay. If the leadership is lost, it leaves them to the next leader.
func (a *admission) maintain(ctx context.Context, isLost func() bool, work func(context.Context) error) error {
	if a == nil || a.server == nil {
		return work(ctx)
	}
	leading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var maintaining sync.WaitGroup
	maintaining.Go(func() { a.server.configurations.RunLeader(leading) })
	err := work(ctx)
	if !isLost() {
		if !a.stays {
			a.server.unpublish(ctx)
		}
		a.linger() // handlers must not be called after the cleanup handlers
	}
	stop()
	maintaining.Wait()
	return err
}

func (s *admissionServer) unpublish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unpublishTimeout)
	defer cancel()
	if err := s.configurations.Cleanup(ctx); err != nil {
		s.logger.Error(err, "The configurations of the admission handlers could not be removed from the cluster.")
	}
}

// stopWith notes that the replica is asked to stop when the context is done.
func (a *admission) stopWith(ctx context.Context) {
	if a == nil {
		return
	}
	context.AfterFunc(ctx, func() {
		close(a.stopping)
		if !a.mayBeCalled() {
			close(a.unneeded)
			return
		}
		a.logger.Info("The admission handlers go on for a while: API servers learn late that the operator stops.", "seconds", a.delay.Seconds())
		time.AfterFunc(a.delay, func() { close(a.unneeded) })
	})
}

// linger waits until no API server sends reviews anymore: all have learned that the replica stops.
func (a *admission) linger() {
	if a == nil {
		return
	}
	select {
	case <-a.unneeded:
	case <-time.After(a.delay): // it was not asked to stop
	}
}

// mayBeCalled reports whether API servers call the handlers although the replica stops.
func (a *admission) mayBeCalled() bool {
	isPersistent := func(d *handler.Declaration) bool { return d.Webhook.Persistent }
	return a.delay > 0 && len(a.handlers) > 0 && a.isPublished() && (a.stays || slices.ContainsFunc(a.handlers, isPersistent))
}

// closing closes the connections of requests that arrive while the replica stops, after their responses.
// A client that keeps a connection open could use it in the moment in which the server closes it.
func (a *admission) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.isStopping() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// isStopping reports whether the replica was asked to stop.
func (a *admission) isStopping() bool {
	select {
	case <-a.stopping:
		return true
	default:
		return false
	}
}
