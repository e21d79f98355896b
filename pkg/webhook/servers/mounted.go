package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Mounted serves on the webhook server of a controller-runtime manager, beside the
// webhooks that are there already: with its port, its certificate and its options,
// and as long as the manager runs. One such server fits one Mounted per Path.
type Mounted struct {
	// Server is that of the manager: mgr.GetWebhookServer().
	Server webhook.Server
	// Path is what the handlers are below. Default: DefaultMountPath.
	Path string
	// ClientConfig is how the API servers call the manager's server, without Path:
	// usually a service.
	ClientConfig admissionregistrationv1.WebhookClientConfig
	// CAFile are the CAs, in PEM, to put into ClientConfig. Default: none; they are
	// there, or cert-manager injects them.
	CAFile string
	// MaxBody and Timeout are as those of Server.
	MaxBody int64
	Timeout time.Duration
}

// DefaultMountPath is the default of Mounted.Path.
const DefaultMountPath = "/kopf"

// Serve waits for the context to be done. The manager serves.
func (m Mounted) Serve(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	if m.Server == nil {
		return errors.New("MountedServer.Server is missing: give it mgr.GetWebhookServer()")
	}
	if (m.ClientConfig.URL == nil) == (m.ClientConfig.Service == nil) {
		return errors.New("MountedServer.ClientConfig must have either a Service or a URL: the API servers have to know how to call the webhook server " +
			"of the manager; give it the Service that leads to its port (Namespace and Name), or the URL without the Path")
	}
	config, err := m.clientConfig()
	if err != nil {
		return err
	}
	limits := Server{MaxBody: m.MaxBody, Timeout: m.Timeout}.withDefaults()
	m.Server.Register(m.path()+"/", http.StripPrefix(m.path(), limits.withDeadlines(ctx, endpoint.Handler)))
	if err := endpoint.Publish(ctx, config); err != nil && ctx.Err() == nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (m Mounted) path() string {
	if m.Path == "" {
		return DefaultMountPath
	}
	return strings.TrimRight(withLeadingSlash(m.Path), "/")
}

func (m Mounted) clientConfig() (admissionregistrationv1.WebhookClientConfig, error) {
	config := *m.ClientConfig.DeepCopy()
	if config.URL != nil {
		config.URL = ptr.To(strings.TrimRight(*config.URL, "/") + m.path())
	}
	if config.Service != nil {
		config.Service.Path = ptr.To(strings.TrimRight(ptr.Deref(config.Service.Path, ""), "/") + m.path())
	}
	if m.CAFile == "" {
		return config, nil
	}
	bundle, err := os.ReadFile(m.CAFile)
	if err != nil {
		return config, fmt.Errorf("the CA of the manager's webhook server: %w", err)
	}
	config.CABundle = bundle
	return config, nil
}
