package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// admissions are the part of an operator that the API servers call: a server in every
// replica, of which the leader tells the cluster. Nil: there are no admission
// handlers.
type admissions struct {
	handlers  registry.Handlers
	served    *catalogue
	logger    logr.Logger
	server    settings.AdmissionServer   // nil: the manager's
	endpoint  settings.AdmissionEndpoint // of the server
	published *configurations.Manager    // nil: the server is the manager's
	reachable chan struct{}              // closed when the cluster knows the server

	toldOnce sync.Once
	mu       sync.Mutex
	said     map[string]bool
}

// newAdmissions makes the part. Whatever cannot work is an error now: admission
// handlers that nobody asks would be a gap that nobody sees.
func newAdmissions(o *operator, mgr manager.Manager) (*admissions, error) {
	handlers, s := o.handlers.Admission(), o.settings.WithDefaults()
	if len(handlers) == 0 && s.Admission.Managed == "" {
		return nil, nil //nolint:nilnil // nil is nobody
	}
	a := &admissions{
		handlers: handlers, served: &catalogue{}, said: map[string]bool{}, reachable: make(chan struct{}),
		logger: o.options.Logger.WithName("admission"), server: s.Admission.Server,
	}
	switch {
	case len(handlers) == 0:
		// What an earlier version has left in the configurations would stay for ever.
		a.server = unasked
	case a.server == nil && o.mounted:
		close(a.reachable)
		a.logger.Info("The admission handlers are served by the manager's webhook server. The cluster is to be told by somebody else.", "path", reviewsPath)
		return a, nil
	case a.server == nil:
		return nil, errors.New("there are admission handlers, but no server that would receive the reviews of the API server: " +
			"set Settings.Admission.Server, or add the operator by kopf.Add to a manager, which has a webhook server")
	case s.Replicas.LeaderElection:
		if err := servers.CheckReplicas(a.server); err != nil {
			return nil, err
		}
	}
	if err := a.connect(mgr, s); err != nil {
		return nil, err
	}
	return a, nil
}

// connect makes what the server and the configurations need of the cluster.
func (a *admissions) connect(mgr manager.Manager, s settings.Settings) error {
	// Of a type of its own: the scheme of the operator need not know the types.
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("the cluster cannot be told about the admission handlers: %w", err)
	}
	if a.endpoint, err = servers.NewEndpoint(mgr.GetConfig(), live); err != nil {
		return err
	}
	options := configurations.OptionsFor(s, podNamespace(), leaseOf(s.Replicas))
	a.published = configurations.NewManager(live, options, a.logger)
	return nil
}

// unasked is the server of an operator without admission handlers: no webhook leads to
// its address.
var unasked = settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://localhost")})
})

// discovered keeps up with what the cluster serves.
func (a *admissions) discovered(present discovery.Snapshot) {
	a.served.update(present)
	hooks, problems := webhook.NewHooks(a.handlers, a.served.all())
	for _, problem := range problems {
		a.complain(problem)
	}
	if a.published != nil {
		a.published.SetHooks(hooks)
	}
}

// complain says something once.
func (a *admissions) complain(problem error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.said[problem.Error()] {
		a.said[problem.Error()] = true
		a.logger.Error(problem, "Some admission handlers will not be called until this is corrected.")
	}
}
