package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

// idleTimeout is how long a connection without requests stays open.
const idleTimeout = 90 * time.Second

// serveInsecure serves without TLS.
func (s Server) serveInsecure(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address())
	if err != nil {
		return fmt.Errorf("the admission server on %s: %w", s.address(), err)
	}
	server := &http.Server{
		Handler:           stripPath(s.Path, s.withDeadlines(ctx, endpoint.Handler)),
		ReadHeaderTimeout: s.Timeout,
		IdleTimeout:       idleTimeout,
	}
	serve := func(ctx context.Context) error { return s.serveUntil(ctx, server, listener) }
	return s.run(ctx, serve, func(ctx context.Context) error {
		return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new(s.url("http"))})
	})
}

// serveUntil serves until the context is done, and then finishes the running requests.
func (s Server) serveUntil(ctx context.Context, server *http.Server, listener net.Listener) error {
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
		defer cancel()
		down <- server.Shutdown(ctx)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-down
}
