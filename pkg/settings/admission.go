package settings

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Admission configures how API servers call the admission handlers.
//
// Specification: Admission control, "Webhook management".
type Admission struct {
	// Server receives the admission reviews and the conversion reviews. There is no default, because it
	// depends on the cluster. An operator with admission handlers or conversions and without a server does
	// not start.
	Server AdmissionServer
	// Managed is the name of the validating and of the mutating webhook configuration that
	// the operator writes for its handlers: "auto.kopf.dev". The operator replaces all
	// webhooks in them, so each operator needs another name. With any name, it also writes spec.conversion
	// of the definitions whose objects it converts. Default: none; you write the
	// configurations, and the operator logs a manifest for them. They have the name of
	// the operator there (Settings.Name), if it is a valid name of an object; else,
	// "auto.kopf.dev".
	Managed string
	// ManifestFile is a file to which the leader writes that manifest whenever it changes:
	// "admission.yaml". The write is atomic. It has no effect with Managed. Default: none;
	// the manifest is logged.
	ManifestFile string
	// Timeout is how long an API server, and its user, wait for the answer to a review. In
	// whole seconds, up to 30. Default: DefaultAdmissionTimeout.
	Timeout time.Duration
	// IncludeOwnNamespace also reviews objects in the operator's own namespace. Default:
	// false, because an operator that is not running cannot admit what is needed to start
	// it. The namespace is also included if Scope.Namespaces names it.
	IncludeOwnNamespace bool
	// RemoveOnExit removes the webhooks from managed configurations when a leader stops in order, so that
	// requests are not reviewed until the next one leads. Without leader election, the operator always
	// does that, except for persistent webhooks. Default: false; with leader election, or in the manager
	// of another program, the webhooks stay, because other replicas serve them.
	RemoveOnExit bool
	// ShutdownDelay is how long an operator whose webhooks stay goes on answering reviews after it was
	// asked to stop, because API servers and proxies learn late that a pod stops. It is not ready in that
	// time. Negative is no delay. Default: DefaultAdmissionShutdownDelay.
	ShutdownDelay time.Duration
}

// DefaultAdmissionShutdownDelay is the default of Admission.ShutdownDelay: long enough for the endpoints of
// a Service to reach all nodes.
const DefaultAdmissionShutdownDelay = 5 * time.Second

// DefaultAdmissionTimeout is the default of Admission.Timeout: the longest that Kubernetes
// permits, because a review that times out rejects the request.
const DefaultAdmissionTimeout = 30 * time.Second

func (a *Admission) fill() {
	fill(&a.Timeout, DefaultAdmissionTimeout)
	fill(&a.ShutdownDelay, DefaultAdmissionShutdownDelay)
}

func (a Admission) validate() error {
	a.fill()
	var misnamed, late error
	if faults := validation.IsDNS1123Subdomain(a.Managed); a.Managed != "" && len(faults) > 0 {
		misnamed = fmt.Errorf("settings.Admission.Managed %q is not a valid name of an object: %s", a.Managed, faults[0])
	}
	if a.Timeout < time.Second || a.Timeout > DefaultAdmissionTimeout || a.Timeout%time.Second != 0 {
		late = fmt.Errorf("settings.Admission.Timeout must be whole seconds, from 1s to %v: %v", DefaultAdmissionTimeout, a.Timeout)
	}
	return errors.Join(misnamed, late)
}

// AdmissionServer receives admission reviews from the API servers, directly or through a
// tunnel. An operator uses it once. Package servers, in pkg/webhook/servers, has some
// implementations.
//
// Specification: Admission control, "Servers and tunnels", "Custom servers/tunnels".
type AdmissionServer interface {
	// Serve serves endpoint.Handler until the context is done, waits for running requests, releases its
	// resources, and returns nil. Requests that run when it returns are canceled. It calls
	// endpoint.Publish as soon as it accepts requests, and whenever its address or CA changes. An
	// error ends the operator.
	Serve(ctx context.Context, endpoint AdmissionEndpoint) error
}

// AdmissionServerFunc is a function as an AdmissionServer.
type AdmissionServerFunc func(context.Context, AdmissionEndpoint) error

// Serve calls the function.
func (f AdmissionServerFunc) Serve(ctx context.Context, endpoint AdmissionEndpoint) error {
	return f(ctx, endpoint)
}

// AdmissionEndpoint is the argument of an AdmissionServer. It is safe for concurrent use.
type AdmissionEndpoint struct {
	// Handler answers the reviews. The path of a request names the admission handler:
	// "/check". If the published address has a path, the server must remove it, with
	// http.StripPrefix. The server must pass on the headers and the TLS state of the request.
	Handler http.Handler
	// Publish writes the address of the server, a URL or a service, and its CA to the webhook
	// configurations. The ids of handlers are appended to the path. It returns when the
	// cluster has accepted this, so serve a new certificate only after you have published its
	// CA. In a standby replica, and if the configurations are not managed, it returns at once.
	Publish func(context.Context, admissionregistrationv1.WebhookClientConfig) error
	// IsLeader reports whether Publish writes to the configurations. Replicas that share a
	// certificate must let the leader replace it: the others do not know whether the cluster
	// trusts the next one.
	IsLeader func() bool
	// ReportCertificate, if not nil, takes the function that returns the certificate that the
	// server presents now. The metrics say when it expires. Call it once, before Publish.
	ReportCertificate func(current func(*tls.ClientHelloInfo) (*tls.Certificate, error))
	// Client is a client for the cluster of the operator, without a cache.
	Client client.Client
	// HTTP sends requests to the API server with the credentials of the operator. URL is the
	// address of the API server, without a path.
	HTTP *http.Client
	URL  string
}
