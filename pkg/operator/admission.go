package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// admission lets the API servers call the admission handlers: every replica serves them, and
// the leader registers the webhooks in the cluster. It is nil if the operator has no
// admission handlers and manages no configurations.
type admission struct {
	handlers  registry.Handlers
	resources *resourceMap
	logger    logr.Logger
	server    *admissionServer // nil for the webhook server of the manager, see Operator.mount
	// stays is set if the webhooks stay in the cluster when this replica stops. Then, it goes on
	// answering reviews for the delay.
	stays    bool
	delay    time.Duration
	stopping chan struct{} // closed when the replica was asked to stop
	unneeded chan struct{} // closed when no API server calls the handlers anymore
	reached  chan struct{} // closed when the API server has answered
	once     sync.Once     // closes it

	mu       sync.Mutex
	reported map[string]bool // the problems of the last discovery
}

// newAdmission creates the admission. It returns an error if the handlers could never be
// called, because this would go unnoticed otherwise.
func newAdmission(o *Operator, mgr manager.Manager, s settings.Settings) (*admission, error) {
	a := &admission{
		handlers: o.handlers.Admission(), resources: &resourceMap{},
		logger: o.options.Logger.WithName("admission"),
		delay:  s.Admission.ShutdownDelay, stopping: make(chan struct{}), unneeded: make(chan struct{}), reached: make(chan struct{}),
	}
	a.stays = s.Admission.Managed == "" || !s.Admission.RemoveOnExit && (s.Replicas.LeaderElection || o.inManager)
	server, err := a.serverFor(o.mounted, s)
	switch {
	case err != nil:
		return nil, err
	case server != nil:
		a.server, err = newAdmissionServer(server, mgr, s, a.logger)
		return a, err
	case len(a.handlers) == 0:
		return nil, nil //nolint:nilnil // nil is an operator without admission
	}
	a.logger.Info("The manager's webhook server serves the admission handlers. The operator creates no webhook configurations for them.", "path", reviewsPath)
	return a, nil
}

// serverFor returns the server for the reviews. It returns nil for the server of the
// manager, or if there are no reviews.
func (a *admission) serverFor(mounted bool, s settings.Settings) (settings.AdmissionServer, error) {
	server := s.Admission.Server
	switch {
	case len(a.handlers) == 0 && s.Admission.Managed == "", server == nil && mounted:
		return nil, nil //nolint:nilnil // nil is documented
	case len(a.handlers) == 0:
		// Otherwise, webhooks of an earlier version would stay in the configurations forever.
		return unreachableServer, nil
	case server == nil:
		return nil, noServerError(a.handlers)
	case s.Replicas.LeaderElection:
		return server, checkReplicas(server)
	default:
		return server, nil
	}
}

// noServerError says that the API servers cannot reach the handlers.
func noServerError(handlers registry.Handlers) error {
	return fmt.Errorf("%s: there are admission handlers, but no server for the reviews of the API server: "+
		"set Settings.Admission.Server, or add the operator by kopf.Add to a manager, which has a webhook server", handlers[0].DeclaredAt)
}

// checkServer returns an error if there are admission handlers without a server. Startup handlers can
// still set one.
func (o *Operator) checkServer() error {
	admission := o.handlers.Admission()
	if len(admission) == 0 || o.settings.Admission.Server != nil || len(o.activities.OfKind(handler.OnStartup)) > 0 {
		return nil
	}
	return noServerError(admission)
}

// unreachableServer is the server of an operator without admission handlers. No webhook
// refers to its address.
var unreachableServer = settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost")})
})

// subscribe makes the engine report the resources of the cluster.
func (a *admission) subscribe(engine *reconcile.Config) {
	if a != nil {
		addDiscovered(engine, a.discovered)
	}
}

// discovered computes the webhooks for the resources of the cluster.
func (a *admission) discovered(present discovery.Snapshot) {
	a.once.Do(func() { close(a.reached) })
	a.resources.update(present)
	hooks, problems := webhook.NewHooks(a.handlers, a.resources.all())
	a.report(problems)
	if a.server != nil {
		a.server.configurations.SetHooks(hooks)
	}
}

// report logs the problems that the last discovery did not have.
func (a *admission) report(problems []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]bool{}
	for _, problem := range problems {
		now[problem.Error()] = true
		if !a.reported[problem.Error()] {
			a.logger.Error(problem, "Some admission handlers will not be called until this is corrected.")
		}
	}
	a.reported = now
}

// newReviews returns the handler of admission reviews.
func (a *admission) newReviews(engine *reconcile.Engine) http.Handler {
	if a == nil {
		return http.NotFoundHandler()
	}
	return a.closing(webhook.New(webhook.Options{
		Handlers: a.handlers, Resources: a.resources.find,
		Logger: engine.Logger.WithName("admission"), Client: engine.Client,
		Context: func(ctx context.Context, call handler.CallContext) context.Context {
			return engine.Context(ctx, reconcile.CallContext{Body: func() *object.Body { return call.Body }, Resource: *call.Resource, Logger: call.Logger})
		},
		Memo:    engine.Memo,
		Measure: measureReview(engine.Metrics), Refused: engine.Metrics.Refusal,
		CheckReady: func(context.Context) error {
			select {
			case <-engine.Ready():
				return nil
			default:
				return errors.New("it does not know all objects yet")
			}
		},
	}))
}

// checkReplicas returns an error if the server cannot serve an operator with several
// replicas: the API servers call any of them, but would trust only the certificate of
// the leader.
func checkReplicas(server settings.AdmissionServer) error {
	s, ok := server.(servers.Server)
	if !ok || s.Insecure || s.CertFile != "" || s.Secret != "" {
		return nil
	}
	return errors.New("each replica of the operator would generate its own certificate for its admission server, and the cluster " +
		`would trust only that of the leader: set Secret ("namespace/name") in the server to share one certificate, or set CertFile and KeyFile`)
}
