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

// DefaultMountPath is the default of Mounted.Path.
const DefaultMountPath = "/kopf"

// Mounted serves on the webhook server of a controller-runtime manager, together with
// the other webhooks there: with its port, its certificate and its options, and as long
// as the manager runs. Several operators on one webhook server need different paths.
//
// Server and ClientConfig are required.
type Mounted struct {
	// Server is the webhook server of the manager: mgr.GetWebhookServer().
	Server webhook.Server
	// Path is the path below which the handlers are served. Default: DefaultMountPath.
	Path string
	// ClientConfig is how the API servers call the webhook server of the manager,
	// without Path: usually a Service.
	ClientConfig admissionregistrationv1.WebhookClientConfig
	// CAFile is the name of a PEM file with the CAs for ClientConfig. Default: none;
	// ClientConfig has them, or cert-manager injects them.
	CAFile string
	// Timeout limits the time of a request. Default: DefaultTimeout.
	Timeout time.Duration
}

// Serve mounts the handlers and waits until the context is done. The manager must start
// the webhook server.
func (m Mounted) Serve(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	if m.Server == nil {
		return errors.New("servers.Mounted.Server is missing: set it to mgr.GetWebhookServer()")
	}
	if (m.ClientConfig.URL == nil) == (m.ClientConfig.Service == nil) {
		return errors.New("servers.Mounted.ClientConfig must have either a Service or a URL, by which the API servers call the webhook server " +
			"of the manager. Set Service to the Service of its port (Namespace and Name), or URL to its address without the Path")
	}
	config := *m.ClientConfig.DeepCopy()
	if config.URL != nil {
		config.URL = new(strings.TrimRight(*config.URL, "/") + m.path())
	}
	if config.Service != nil {
		config.Service.Path = new(strings.TrimRight(ptr.Deref(config.Service.Path, ""), "/") + m.path())
	}
	if m.CAFile != "" {
		bundle, err := os.ReadFile(m.CAFile)
		if err != nil {
			return fmt.Errorf("the CA of the manager's webhook server: %w", err)
		}
		config.CABundle = bundle
	}
	limits := Server{Timeout: m.Timeout}.withDefaults()
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
