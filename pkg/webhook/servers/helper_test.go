package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

const patience = 20 * time.Second

// freePort returns a port on which no program listens. It is below the ports that the
// system gives to clients, so that no client gets it before the server does.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.N(10000)
		listener, err := net.Listen("tcp", net.JoinHostPort("localhost", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// running is a running server.
type running struct {
	published chan admissionregistrationv1.WebhookClientConfig
	ended     chan error
	stop      func() error // and wait
}

// start serves until the end of the test or an earlier stop.
func start(t *testing.T, server settings.AdmissionServer, endpoint settings.AdmissionEndpoint) *running {
	t.Helper()
	r := &running{published: make(chan admissionregistrationv1.WebhookClientConfig, 100), ended: make(chan error, 1)}
	endpoint.Publish = func(_ context.Context, config admissionregistrationv1.WebhookClientConfig) error {
		r.published <- config
		return nil
	}
	if endpoint.Handler == nil {
		endpoint.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		r.ended <- server.Serve(ctx, endpoint)
		close(r.ended)
	}()
	r.stop = func() error { cancel(); return <-r.ended }
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// address waits for the first address that the server publishes.
func (r *running) address(t *testing.T) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	select {
	case config := <-r.published:
		return config
	case err := <-r.ended:
		t.Fatal("the server has ended: ", err)
	case <-time.After(patience):
		t.Fatal("the server does not publish its address")
	}
	return admissionregistrationv1.WebhookClientConfig{}
}

// caller returns a client that verifies the server as an API server does.
func caller(t *testing.T, bundle []byte, adjust ...func(*tls.Config)) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(bundle)
	for _, f := range adjust {
		f(config)
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// post sends a request and returns the status and the text of the answer.
func post(c *http.Client, url, body string) (int, string, error) {
	response, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(text)), err
}

func expectAnswer(g gomega.Gomega, c *http.Client, url, want string) {
	status, text, err := post(c, url, "{}")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(status).To(gomega.Equal(http.StatusOK))
	g.Expect(text).To(gomega.Equal(want))
}
