package settings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Admission is how the API servers reach the admission handlers.
//
// Specification: Admission control, "Webhook management".
type Admission struct {
	// Server receives the admission reviews. There is no default, for every cluster
	// needs another one: an operator with admission handlers and without a server
	// does not start.
	Server AdmissionServer
	// Managed is the name of the two configurations, a validating and a mutating
	// one, in which the operator tells the cluster about its handlers:
	// "auto.kopf.dev". Whatever webhooks they have is replaced. Default: none; they
	// are left to a person, for whom a manifest is logged. Two operators need two
	// names.
	Managed string
	// ManifestFile is where the leader writes that manifest, whenever it changes, in
	// one piece: "admission.yaml". Default: nowhere; then the log has it. It has no
	// effect with Managed.
	ManifestFile string
	// Timeout is how long an API server waits for the answer to a review, and with it
	// the user: whole seconds, up to 30. Default: DefaultAdmissionTimeout.
	Timeout time.Duration
	// OwnNamespace asks the handlers about the objects in the operator's own
	// namespace, too. Default: false, for an operator that does not run cannot
	// admit what is needed to start it. The namespace is not left out either when
	// Scope.Namespaces names it.
	IncludeOwnNamespace bool
}

// DefaultAdmissionTimeout is the default of Admission.Timeout: the longest that
// Kubernetes permits, as a check that is given up rejects what it was to check.
const DefaultAdmissionTimeout = 30 * time.Second

func (a *Admission) fill() { fill(&a.Timeout, DefaultAdmissionTimeout) }

func (a Admission) validate() error {
	a.fill()
	var misnamed, late error
	if faults := validation.IsDNS1123Subdomain(a.Managed); a.Managed != "" && len(faults) > 0 {
		misnamed = fmt.Errorf("settings.Admission.Managed %q is no name of an object: %s", a.Managed, faults[0])
	}
	if a.Timeout < time.Second || a.Timeout > DefaultAdmissionTimeout || a.Timeout%time.Second != 0 {
		late = fmt.Errorf("settings.Admission.Timeout must be whole seconds, from 1s to %v, for Kubernetes takes no others: %v", DefaultAdmissionTimeout, a.Timeout)
	}
	return errors.Join(misnamed, late)
}

// AdmissionServer receives admission reviews from the API servers, directly or
// through a tunnel. It is used once in the life of an operator. Some are in
// pkg/webhook/servers; one's own needs this one method.
//
// Specification: Admission control, "Servers and tunnels", "Custom servers/tunnels".
type AdmissionServer interface {
	// Serve serves endpoint.Handler until the context is done, and then returns nil
	// when all that it has allocated is free again: defer is the place for that.
	// It calls endpoint.Publish as soon as the address can be called, and whenever
	// the address or the CA changes. An error ends the operator.
	Serve(ctx context.Context, endpoint AdmissionEndpoint) error
}

// AdmissionServerFunc is a function as an AdmissionServer.
type AdmissionServerFunc func(context.Context, AdmissionEndpoint) error

// Serve calls the function.
func (f AdmissionServerFunc) Serve(ctx context.Context, endpoint AdmissionEndpoint) error {
	return f(ctx, endpoint)
}

// AdmissionEndpoint is what an AdmissionServer works with. All of it is safe for
// concurrent use.
type AdmissionEndpoint struct {
	// Handler answers the reviews that are posted to it. The path of a request says
	// which of the admission handlers is meant, "/check", below whatever path the
	// server was published with; the server cuts that off (http.StripPrefix). It
	// passes the headers and the TLS state of the request on as they are.
	Handler http.Handler
	// Publish tells the cluster where the server is, and by which CA it can be
	// verified: a URL, or a service. Ids of handlers are appended to the path. It
	// returns when the cluster has accepted that; so a new certificate is served
	// only after the bundle with its CA has been published. In an operator that
	// stands by, or whose configurations are not managed, it returns at once.
	Publish func(context.Context, admissionregistrationv1.WebhookClientConfig) error
	// Client reads and writes the cluster of the operator, without a cache.
	Client client.Client
	// HTTP sends requests to the API server itself, whose address is URL, with the
	// credentials of the operator: "/version".
	HTTP *http.Client
	URL  string
}
