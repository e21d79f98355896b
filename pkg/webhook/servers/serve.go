package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/certificates"
)

// Serve serves until the context is done. It logs to the logger of the context.
func (s Server) Serve(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	s, err := s.withDefaults().withPort(ctx)
	if err != nil {
		return err
	}
	if s.Insecure {
		return s.serveInsecure(ctx, endpoint)
	}
	source, err := s.certificateSource(endpoint, logf.FromContext(ctx))
	if err != nil {
		return err
	}
	adjust, err := s.tlsConfig(source)
	if err != nil {
		return err
	}
	bundle, err := source.Open(ctx)
	if err != nil {
		return err
	}
	if endpoint.ReportCertificate != nil {
		endpoint.ReportCertificate(source.GetCertificate)
	}
	unused := &unusedConnections{}
	server := webhook.NewServer(webhook.Options{Host: s.Addr, Port: s.Port, TLSOpts: []func(*tls.Config){adjust, unused.track}})
	server.Register("/", unused.without(stripPath(s.Path, s.withDeadlines(ctx, endpoint.Handler))))
	serve := func(ctx context.Context) error {
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		defer context.AfterFunc(ctx, func() { unused.close(); stop() })()
		return server.Start(serving)
	}
	return s.run(ctx, serve, func(ctx context.Context) error {
		check := server.StartedChecker()
		listens := func(context.Context) (bool, error) { return check(nil) == nil, nil }
		if err := wait.PollUntilContextCancel(ctx, pollInterval, true, listens); err != nil {
			return err
		}
		return s.publishUntilDone(ctx, endpoint, source, bundle)
	})
}

// run runs both functions until the context is done or one of them fails. The server
// stops last.
func (s Server) run(ctx context.Context, serve, work func(context.Context) error) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	var served error
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		served = serve(serving)
	})
	err := work(working)
	if err == nil {
		<-working.Done()
	}
	stop()
	group.Wait()
	switch {
	case served != nil:
		return fmt.Errorf("the admission server on %s: %w", s.address(), served)
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// pollInterval is how often to check whether the server listens.
const pollInterval = 10 * time.Millisecond

// publishUntilDone publishes the address of the server, and then the CAs of every new certificate.
func (s Server) publishUntilDone(ctx context.Context, endpoint settings.AdmissionEndpoint, source certificates.Source, bundle []byte) error {
	publish := func(ctx context.Context, bundle []byte) error {
		if s.CADump != "" {
			if err := os.WriteFile(s.CADump, bundle, 0o644); err != nil { // certificates are not secret
				return fmt.Errorf("the CA of the admission server: %w", err)
			}
		}
		return endpoint.Publish(ctx, s.clientConfig(bundle))
	}
	if err := publish(ctx, bundle); err != nil {
		return err
	}
	source.Run(ctx, publish)
	return nil
}

// clientConfig returns how the API servers call this server.
func (s Server) clientConfig(bundle []byte) admissionregistrationv1.WebhookClientConfig {
	config := admissionregistrationv1.WebhookClientConfig{CABundle: bundle}
	if s.Service == nil {
		config.URL = new(s.url("https"))
		return config
	}
	config.Service = s.Service.DeepCopy()
	if s.Path != "" {
		config.Service.Path = new(withLeadingSlash(s.Path))
	}
	return config
}

// url returns the address for clients.
func (s Server) url(scheme string) string {
	return scheme + "://" + net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) + withLeadingSlash(s.Path)
}
