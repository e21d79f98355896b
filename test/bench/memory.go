package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/controlplane"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// plane is an API server.
type plane interface {
	Config() *rest.Config
	KubeConfig() []byte
	Stop() error
}

// startPlane starts the API server of a measurement.
func (o options) startPlane(programs, subject string) (plane, error) {
	if o.memory {
		return startMemory()
	}
	return controlplane.Start(programs, controlplane.Options{Flags: o.serverFlags(subject)})
}

// memoryPlane is the API server of the test kit, in this process, behind a server on loopback: it keeps far more objects, far
// faster, than a real one on a small machine.
type memoryPlane struct{ server *httptest.Server }

func startMemory() (plane, error) {
	failed := &failure{}
	config := kopftest.NewAPIServer(failed).Config()
	if failed.err != nil {
		return nil, failed.err
	}
	address, err := neturl.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport = config.Transport
	proxy.FlushInterval = -1                    // of watches
	proxy.ErrorLog = log.New(io.Discard, "", 0) // operators that are killed leave requests
	server := httptest.NewUnstartedServer(http.HandlerFunc(proxy.ServeHTTP))
	server.EnableHTTP2 = true
	server.StartTLS()
	return memoryPlane{server}, nil
}

// failure keeps the error of a server that does not start.
type failure struct {
	testing.TB
	err error
}

func (f *failure) Helper() {}
func (f *failure) Fatal(args ...any) {
	f.err = fmt.Errorf("the API server in memory: %s", fmt.Sprint(args...))
}

// Config returns a configuration of an administrator.
func (m memoryPlane) Config() *rest.Config {
	return &rest.Config{Host: m.server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// KubeConfig returns the content of a kubeconfig file of an administrator.
func (m memoryPlane) KubeConfig() []byte {
	return fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "memory",
"clusters": [{"name": "memory", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}],
"contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "memory"}}], "users": [{"name": "memory", "user": {}}]}`, m.server.URL)
}

// Stop ends all connections.
func (m memoryPlane) Stop() error {
	m.server.CloseClientConnections()
	return nil
}
