package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/certificates"
)

func TestServerWithAGeneratedCertificate(t *testing.T) {
	g, dump, port := gomega.NewWithT(t), filepath.Join(t.TempDir(), "ca.pem"), freePort(t)
	server := start(t, Server{Port: port, Path: "some/path", CADump: dump, ExtraNames: []string{"127.0.0.1"}}, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(*config.URL).To(gomega.Equal(fmt.Sprintf("https://localhost:%d/some/path", port)))
	expectAnswer(g, caller(t, config.CABundle), *config.URL+"/check/spec.field", "/check/spec.field")
	expectAnswer(g, caller(t, config.CABundle), fmt.Sprintf("https://127.0.0.1:%d/some/path/a", port), "/a")
	dumped, err := os.ReadFile(dump)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(dumped).To(gomega.Equal(config.CABundle))

	_, _, err = post(caller(t, config.CABundle, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), *config.URL, "")
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("protocol version")))
	g.Expect(server.stop()).To(gomega.Succeed())
	_, _, err = post(caller(t, config.CABundle), *config.URL, "")
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("refused")))
}

func TestServerWithACertificateInFiles(t *testing.T) {
	g, dir := gomega.NewWithT(t), t.TempDir()
	pair, err := certificates.Generate([]string{"localhost"}, time.Hour)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	chain, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	g.Expect(os.WriteFile(chain, pair.Chain, 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(key, pair.Key, 0o600)).To(gomega.Succeed())
	server := start(t, Server{Port: freePort(t), CertFile: chain, KeyFile: key, CAFile: chain}, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(config.CABundle).To(gomega.Equal(pair.Chain))
	expectAnswer(g, caller(t, config.CABundle), *config.URL+"/a", "/a")
}

func TestServerBehindAService(t *testing.T) {
	g, port := gomega.NewWithT(t), freePort(t)
	service := &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "svc", Port: new(int32(8443))}
	server := start(t, Server{Addr: "127.0.0.1", Port: port, Service: service, Path: "p"}, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(config.URL).To(gomega.BeNil())
	g.Expect(*config.Service).To(gomega.Equal(admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "svc", Port: new(int32(8443)), Path: new("/p")}))
	as := caller(t, config.CABundle, func(c *tls.Config) { c.ServerName = "svc.ns.svc" })
	expectAnswer(g, as, fmt.Sprintf("https://127.0.0.1:%d/p/a", port), "/a")
	g.Expect(Server{Service: service}.withDefaults().address()).To(gomega.Equal("0.0.0.0:9443"))
}

// Two operators on one machine do not need two settings.
func TestServersForDevelopmentFindFreePorts(t *testing.T) {
	g := gomega.NewWithT(t)
	first := start(t, Server{}, settings.AdmissionEndpoint{}).address(t)
	second := start(t, Server{}, settings.AdmissionEndpoint{}).address(t)
	g.Expect(*first.URL).NotTo(gomega.Equal(*second.URL))
	for _, config := range []admissionregistrationv1.WebhookClientConfig{first, second} {
		expectAnswer(g, caller(t, config.CABundle), *config.URL+"/a", "/a")
	}
}

func TestPlainHTTP(t *testing.T) {
	g := gomega.NewWithT(t)
	server := start(t, Server{Port: freePort(t), Insecure: true}, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(*config.URL).To(gomega.HavePrefix("http://localhost:"))
	expectAnswer(g, &http.Client{Timeout: patience}, *config.URL+"/a", "/a")
	g.Expect(server.stop()).To(gomega.Succeed())
}

func TestPortInUseIsAnError(t *testing.T) {
	for name, insecure := range map[string]bool{"HTTPS": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			start(t, Server{Port: port}, settings.AdmissionEndpoint{}).address(t)
			second := start(t, Server{Port: port, Insecure: insecure}, settings.AdmissionEndpoint{})
			gomega.NewWithT(t).Eventually(second.ended).WithTimeout(patience).Should(gomega.Receive(
				gomega.MatchError(gomega.ContainSubstring(fmt.Sprintf("the admission server on localhost:%d: ", port))),
			))
		})
	}
}

func TestRequestsAreLimitedInTime(t *testing.T) {
	g := gomega.NewWithT(t)
	late := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		late <- r.Context().Err()
	})
	server := start(t, Server{Port: freePort(t), Timeout: 50 * time.Millisecond}, settings.AdmissionEndpoint{Handler: handler})
	config := server.address(t)
	_, _, err := post(caller(t, config.CABundle), *config.URL, "x")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(late).To(gomega.Receive(gomega.MatchError(context.DeadlineExceeded)))
}

// A request that runs while the server stops gets an answer.
func TestRunningRequestsAreFinished(t *testing.T) {
	g := gomega.NewWithT(t)
	called, answer := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(called)
		<-answer
		if r.Context().Err() != nil {
			w.WriteHeader(http.StatusGone)
		}
	})
	server := start(t, Server{Port: freePort(t)}, settings.AdmissionEndpoint{Handler: handler})
	config := server.address(t)
	statuses := make(chan int, 1)
	go func() {
		status, _, _ := post(caller(t, config.CABundle), *config.URL, "x")
		statuses <- status
	}()
	<-called
	stopped := make(chan error, 1)
	go func() { stopped <- server.stop() }()
	g.Eventually(func() error {
		_, _, err := post(caller(t, config.CABundle), *config.URL, "x")
		return err
	}).WithTimeout(patience).Should(gomega.HaveOccurred(), "it does not listen anymore")
	close(answer)
	g.Eventually(statuses).WithTimeout(patience).Should(gomega.Receive(gomega.Equal(http.StatusOK)))
	g.Eventually(stopped).WithTimeout(patience).Should(gomega.Receive(gomega.BeNil()))
}

// API servers open connections in advance. A request on one of them would be lost while the server shuts
// down, so they are closed before it accepts no others.
func TestConnectionsWithoutARequestAreClosedFirst(t *testing.T) {
	g := gomega.NewWithT(t)
	var asked atomic.Int32 // the function of the user
	server := Server{TLSOptions: []func(*tls.Config){func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			asked.Add(1)
			return nil, nil //nolint:nilnil // as it is
		}
	}}}
	r := start(t, server, settings.AdmissionEndpoint{})
	config := r.address(t)
	address := strings.TrimPrefix(*config.URL, "https://")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CABundle)
	unused, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { _ = unused.Close() }()
	expectAnswer(g, caller(t, config.CABundle), *config.URL+"/a", "/a")

	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	g.Eventually(func() error {
		other, err := net.Dial("tcp", address)
		if err == nil {
			_ = other.Close()
		}
		return err
	}).WithTimeout(patience).Should(gomega.HaveOccurred())
	g.Expect(unused.SetReadDeadline(time.Now().Add(time.Second))).To(gomega.Succeed())
	_, err = unused.Read(make([]byte, 1))
	// The server has not read what the handshake ended with, if that is late: then it resets the connection.
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	g.Expect(closed).To(gomega.BeTrue(), "the server has not closed the connection: %v", err)
	g.Expect(<-stopped).To(gomega.Succeed())
	g.Expect(asked.Load()).To(gomega.BeNumerically(">=", 2))
}

// Connections that their clients have closed without a request take no memory for ever.
func TestClosedConnectionsWithoutARequestAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, u := gomega.NewWithT(t), &unusedConnections{}
		for port := range 3 {
			u.add(from(port))
			time.Sleep(maxUnused)
		}
		u.add(from(3))
		g.Expect(u.byClient).To(gomega.HaveLen(2))
	})
}

// from is a connection of a client with this port.
type from int

func (from) Close() error { return nil }

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{Port: int(f)} }

func TestInvalidServersAreErrors(t *testing.T) {
	tests := map[string]struct {
		server  Server
		message string
	}{
		"half a certificate":           {Server{CertFile: "a"}, "needs either both CertFile and KeyFile, or none of them"},
		"a CA without a certificate":   {Server{CAFile: "a"}, "CAFile and CAData need CertFile and KeyFile"},
		"missing files":                {Server{CertFile: "/no/such", KeyFile: "/no/such"}, "open /no/such"},
		"clients without a CA":         {Server{ClientAuth: tls.RequireAndVerifyClientCert}, "set ClientCAFile"},
		"a secret without a namespace": {Server{Secret: "a"}, `must have the form "namespace/name"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.server.Serve(t.Context(), settings.AdmissionEndpoint{})
			gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.message)))
		})
	}
}

func TestMountedServerServesNextToOtherWebhooks(t *testing.T) {
	g, port := gomega.NewWithT(t), freePort(t)
	pair, err := certificates.Generate([]string{"localhost"}, time.Hour)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	dir := t.TempDir()
	for name, data := range map[string][]byte{"a.crt": pair.Chain, "a.key": pair.Key} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(gomega.Succeed())
	}
	managers := webhook.NewServer(webhook.Options{Host: "localhost", Port: port, CertDir: dir, CertName: "a.crt", KeyName: "a.key"})
	managers.Register("/other", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- managers.Start(ctx) }()
	defer func() { cancel(); g.Expect(<-ended).To(gomega.Succeed()) }()
	mounted := Mounted{
		Server: managers, CAFile: filepath.Join(dir, "a.crt"),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://localhost:%d/", port))},
	}
	server := start(t, mounted, settings.AdmissionEndpoint{})
	config := server.address(t)
	g.Expect(*config.URL).To(gomega.HaveSuffix("/kopf"))
	g.Eventually(func(g gomega.Gomega) { expectAnswer(g, caller(t, config.CABundle), *config.URL+"/a", "/a") }).WithTimeout(patience).Should(gomega.Succeed())
	status, _, err := post(caller(t, config.CABundle), fmt.Sprintf("https://localhost:%d/other", port), "")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(status).To(gomega.Equal(http.StatusTeapot))
	g.Expect(server.stop()).To(gomega.Succeed())
}

func TestInvalidMountedServersAreErrors(t *testing.T) {
	url, service := new("https://localhost/"), &admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "svc"}
	managers := webhook.NewServer(webhook.Options{})
	tests := map[string]struct {
		mounted Mounted
		want    string
	}{
		"no server":               {Mounted{ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: url}}, "servers.Mounted.Server is missing"},
		"no client configuration": {Mounted{Server: managers}, "servers.Mounted.ClientConfig must have either a Service or a URL"},
		"both a URL and a Service": {
			Mounted{Server: managers, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: url, Service: service}},
			"servers.Mounted.ClientConfig must have either a Service or a URL",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gomega.NewWithT(t).Expect(test.mounted.Serve(t.Context(), settings.AdmissionEndpoint{})).To(gomega.MatchError(gomega.ContainSubstring(test.want)))
		})
	}
}
