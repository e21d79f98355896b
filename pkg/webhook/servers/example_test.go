package servers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// A tunnel with inlets, whose other end is a machine in the internet with the name
// hooks.example.com and a certificate for it.
func ExampleTunneled() {
	local := servers.Server{Port: 9443, Insecure: true}
	inlets := settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		client := exec.CommandContext(ctx, "inlets-pro", "http", "client",
			"--url=wss://hooks.example.com:8123", "--token-file=inlets.token",
			"--upstream=hooks.example.com=http://localhost:9443")
		client.Cancel = func() error { return client.Process.Signal(os.Interrupt) }
		if err := client.Start(); err != nil {
			return err
		}
		url := "https://hooks.example.com"
		if err := endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: &url}); err != nil {
			cancel()
			return errors.Join(err, client.Wait())
		}
		err := client.Wait() // until the context is done or the tunnel breaks
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the tunnel has broken: %w", err)
	})

	var s settings.Settings
	s.Admission.Managed = "auto.kopf.dev"
	s.Admission.Server = servers.Tunneled(local, inlets)
}

// A server for a cluster that runs on the same machine. It generates its certificate.
func ExampleAuto() {
	var s settings.Settings
	s.Admission.Managed = "auto.kopf.dev"
	s.Admission.Server = servers.Auto(servers.Server{}) // detects K3d, Minikube, and Docker Desktop
}

// A server with a certificate of your own, which is called by its host name.
func ExampleServer() {
	var s settings.Settings
	s.Admission.Server = servers.Server{
		Host: "operator.example.com", Port: 443,
		CertFile: "tls.crt", KeyFile: "tls.key", CAFile: "ca.crt",
	}
}
