package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// admission lets the API servers call the admission handlers and the conversions: every replica serves them, and
// the leader registers the webhooks in the cluster. It is nil if the operator has neither and manages no
// configurations.
type admission struct {
	handlers    registry.Handlers
	conversions conversion.Set
	graphs      atomic.Pointer[map[string]*conversion.Graph] // of the resources of the cluster; nil until they are known
	converting  func(definition, from, to string)            // told about each conversion that the API server can ask for
	relist      func(context.Context, schema.GroupResource)  // lists the objects of a resource again
	resources   *resourceMap
	logger      logr.Logger
	server      *admissionServer // nil for the webhook server of the manager, see Operator.mount
	// stays is set if the webhooks stay in the cluster when this replica stops. Then, it goes on
	// answering reviews for the delay.
	stays    bool
	delay    time.Duration
	stopping chan struct{} // closed when the replica was asked to stop
	unneeded chan struct{} // closed when no API server calls the handlers anymore
	reached  chan struct{} // closed when the API server has answered
	once     sync.Once     // closes it
	// standsBy is set if another replica may lead instead. converted is closed when the leader may handle the
	// objects: the cluster lets it convert them, and they are listed in that way.
	standsBy      bool
	converted     chan struct{}
	onceConverted sync.Once // closes it

	// follows is set if another replica may write the conversions while this one handles objects.
	follows bool

	mu       sync.Mutex
	reported map[string]bool // the problems of the last discovery
	relists  []chan struct{} // closed when objects are listed again; see listAgain
}

// newAdmission creates the admission. It returns an error if the handlers could never be
// called, because this would go unnoticed otherwise.
func (o *Operator) newAdmission(mgr manager.Manager, s settings.Settings) (*admission, error) {
	a := &admission{
		handlers: o.handlers.Admission(), conversions: o.conversions, resources: &resourceMap{},
		logger: o.options.Logger.WithName("admission"),
		delay:  s.Admission.ShutdownDelay, stopping: make(chan struct{}), unneeded: make(chan struct{}), reached: make(chan struct{}),
		standsBy: s.Replicas.LeaderElection || s.Replicas.Shards > 0 || o.inManager, converted: make(chan struct{}),
	}
	a.follows = s.Replicas.Shards > 0 && s.Admission.Managed != ""
	a.stays = s.Admission.Managed == "" || !s.Admission.RemoveOnExit && a.standsBy
	server := s.Admission.Server
	switch {
	case !a.isCalled() && s.Admission.Managed == "":
		return nil, nil //nolint:nilnil // nil is an operator that the API servers do not call
	case server == nil && o.mounted:
		a.logger.Info("The manager's webhook server serves the admission handlers. The operator creates no webhook configurations for them.", "path", reviewsPath)
		return a, nil
	case !a.isCalled():
		// Otherwise, webhooks of an earlier version would stay in the configurations forever.
		server = unreachableServer
	case server == nil:
		return nil, o.noServerError()
	case s.Replicas.LeaderElection || s.Replicas.Shards > 0:
		if err := checkReplicas(server); err != nil {
			return nil, err
		}
	}
	var err error
	a.server, err = newAdmissionServer(server, mgr, s, a.logger)
	return a, err
}

// isCalled reports whether API servers call the operator: it has admission handlers or conversions.
func (o *Operator) isCalled() bool { return len(o.handlers.Admission()) > 0 || len(o.conversions) > 0 }

func (a *admission) isCalled() bool { return len(a.handlers) > 0 || len(a.conversions) > 0 }

// noServerError says that the API servers cannot reach the handlers.
func (o *Operator) noServerError() error {
	what := "admission handlers"
	var place string
	if handlers := o.handlers.Admission(); len(handlers) > 0 {
		place = handlers[0].DeclaredAt
	} else {
		what = "conversions"
		place = o.conversions[0].DeclaredAt
	}
	return fmt.Errorf("%s: there are %s, but no server for the reviews of the API server: "+
		"set Settings.Admission.Server, or add the operator by kopf.Add to a manager, which has a webhook server", place, what)
}

// checkServer returns an error if there are admission handlers or conversions without a server. Startup handlers can
// still set one.
func (o *Operator) checkServer() error {
	if !o.isCalled() || o.settings.Admission.Server != nil || len(o.activities.OfKind(handler.OnStartup)) > 0 {
		return nil
	}
	return o.noServerError()
}

// unreachableServer is the server of an operator without admission handlers. No webhook
// refers to its address.
var unreachableServer = settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
	return endpoint.Publish(ctx, admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost")})
})

// discovered computes the webhooks for the resources of the cluster, and logs the problems that the
// last discovery did not have.
func (a *admission) discovered(present discovery.Snapshot) {
	a.resources.update(present)
	hooks, problems := webhook.NewHooks(a.handlers, a.resources.all())
	graphs, unresolved := a.conversions.Resolve(a.resources.all())
	a.graphs.Store(&graphs)
	for name, graph := range graphs {
		graph.Pairs(func(from, to string) { a.converting(name, from, to) })
	}
	a.once.Do(func() { close(a.reached) }) // the server starts, and can answer
	if a.server != nil {
		var sorted []*conversion.Graph
		for _, name := range slices.Sorted(maps.Keys(graphs)) {
			sorted = append(sorted, graphs[name])
		}
		a.server.configurations.SetHooks(hooks, sorted...)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]bool{}
	report := func(problems []error, message string) {
		for _, problem := range problems {
			now[problem.Error()] = true
			if !a.reported[problem.Error()] {
				a.logger.Error(problem, message)
			}
		}
	}
	report(problems, "Some admission handlers will not be called until this is corrected.")
	report(unresolved, "Some conversions will not be called until this is corrected.")
	a.reported = now
}

// graph returns the conversions of a resource by the name of its definition, or nil.
func (a *admission) graph(definition string) *conversion.Graph {
	graphs := a.graphs.Load()
	if graphs == nil {
		return nil
	}
	return (*graphs)[definition]
}

// newReviews returns the handler of admission reviews.
func (a *admission) newReviews(engine *reconcile.Engine) http.Handler {
	if a == nil {
		return http.NotFoundHandler()
	}
	a.relist = engine.Relist
	a.converting = engine.Metrics.Converting // so that the first failure is an increase
	return a.closing(webhook.New(webhook.Options{
		Handlers: a.handlers, Resources: a.resources.find,
		Logger: engine.Logger.WithName("admission"), Client: engine.Client,
		Context: func(ctx context.Context, call handler.CallContext) context.Context {
			return engine.Context(ctx, reconcile.CallContext{Body: func() *object.Body { return call.Body }, Resource: *call.Resource, Logger: call.Logger})
		},
		Memo: engine.Memo, Tracer: engine.Tracer,
		Measure: func(d *handler.Declaration, err error, took time.Duration) {
			var rejection *handler.AdmissionError
			outcome := metrics.ReviewFailed
			switch {
			case err == nil:
				outcome = metrics.Admitted
			case errors.As(err, &rejection):
				outcome = metrics.Denied
			}
			engine.Metrics.Review(string(d.Kind), d.ID, outcome, took)
		},
		Refused:     engine.Metrics.Refusal,
		Conversions: a.graph,
		Converted: func(definition, from, to string, err error, took time.Duration) {
			engine.Metrics.Conversion(definition, from, to, err == nil, took)
		},
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
// replicas: the API servers call any of them, but would trust only the certificate of one.
func checkReplicas(server settings.AdmissionServer) error {
	s, ok := server.(servers.Server)
	if !ok || s.Insecure || s.CertFile != "" || s.Secret != "" {
		return nil
	}
	return errors.New("each replica of the operator would generate its own certificate, and the cluster would trust only one of them. " +
		`Set Secret ("namespace/name") in the admission server, so that the replicas share one certificate, or set CertFile and KeyFile`)
}

// admissionServer is the server of the settings (Admission.Server), with the webhook
// configurations that refer to it.
type admissionServer struct {
	server         settings.AdmissionServer
	endpoint       settings.AdmissionEndpoint // of the cluster, without its handler
	configurations *configurations.Manager
	logger         logr.Logger

	certificate atomic.Pointer[func(*tls.ClientHelloInfo) (*tls.Certificate, error)] // nil until the server reports it
	publishOnce sync.Once
	published   chan struct{} // closed when the address is published
}

func newAdmissionServer(server settings.AdmissionServer, mgr manager.Manager, s settings.Settings, logger logr.Logger) (*admissionServer, error) {
	// A separate client, because the scheme of the operator may not contain the types.
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("the client for the admission configurations cannot be created: %w", err)
	}
	live = client.WithFieldOwner(live, fieldManager(s))
	endpoint, err := configurations.NewEndpoint(mgr.GetConfig(), live)
	if err != nil {
		return nil, err
	}
	return &admissionServer{
		server: server, endpoint: endpoint, logger: logger, published: make(chan struct{}),
		configurations: configurations.NewManager(live, configurations.OptionsFor(s, podNamespace(), leaseOf(s.Replicas)), logger),
	}, nil
}

// serve serves reviews until the context is done. Then, it gives running reviews some time,
// and cancels them afterwards.
func (a *admission) serve(ctx context.Context, reviews http.Handler) error {
	if a == nil || a.server == nil {
		return nil
	}
	select {
	case <-a.reached: // servers can need the API server, as for their certificate
	case <-ctx.Done():
		return nil
	}
	s := a.server
	answering, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(reserve, abandon) })()
	endpoint := s.configurations.Endpoint(cancelWith(answering, reviews), s.endpoint)
	endpoint.ReportCertificate = func(current func(*tls.ClientHelloInfo) (*tls.Certificate, error)) { s.certificate.Store(&current) }
	publish := endpoint.Publish
	endpoint.Publish = func(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
		err := publish(ctx, config)
		if err == nil {
			s.publishOnce.Do(func() { close(s.published) })
		}
		return err
	}
	err := handler.WithRecover(func() error { return s.server.Serve(log.IntoContext(ctx, s.logger), endpoint) })
	err = handler.Readable(err)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the admission server (Settings.Admission.Server) has failed: %w", err)
	}
	return nil
}

// cancelWith cancels unanswered requests when the context is done.
func cancelWith(answering context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(answering, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// certificateExpiry returns when the certificate of the server expires. It is zero without a
// server that reports its certificate.
func (a *admission) certificateExpiry() time.Time {
	if a == nil || a.server == nil {
		return time.Time{}
	}
	current := a.server.certificate.Load()
	if current == nil {
		return time.Time{}
	}
	var certificate *tls.Certificate
	err := handler.WithRecover(func() (err error) { // it can be that of a server of the user
		certificate, err = (*current)(&tls.ClientHelloInfo{})
		return err
	})
	if err != nil || certificate == nil || len(certificate.Certificate) == 0 {
		return time.Time{}
	}
	if leaf := certificate.Leaf; leaf != nil {
		return leaf.NotAfter
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// isPublished reports whether the API servers can reach the admission handlers.
func (a *admission) isPublished() bool {
	if a == nil || a.server == nil {
		return true
	}
	select {
	case <-a.server.published:
		return true
	default:
		return false
	}
}

// waitPublished waits until the API servers can reach the admission handlers. It
// returns false if the context is done first.
func (a *admission) waitPublished(ctx context.Context) bool {
	if a == nil || a.server == nil {
		return true
	}
	select {
	case <-a.server.published:
		return true
	case <-ctx.Done():
		return false
	}
}

// waitConverted waits until the handlers can be called: the objects are converted, and listed again if they were not
// before. It returns false if the context is done first. A replica that may stand by does not wait: it would never be
// ready without the leadership.
func (a *admission) waitConverted(ctx context.Context) bool {
	if a == nil || a.server == nil || a.standsBy || len(a.conversions) == 0 {
		return true
	}
	select {
	case <-a.converted:
		return true
	case <-ctx.Done():
		return false
	}
}

// unpublishTimeout limits how long removing the webhooks can take.
const unpublishTimeout = 10 * time.Second

// maintain keeps the configurations up to date while a leader works, and cleans them up
// afterwards, unless they stay. The work begins when the objects are converted: handlers must not see others. If the
// leadership is lost, it leaves the configurations to the next leader.
func (a *admission) maintain(ctx context.Context, isLost func() bool, work func(context.Context) error) error {
	if a == nil || a.server == nil {
		return work(ctx)
	}
	leading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var maintaining sync.WaitGroup
	a.server.configurations.OnSwitch(func(definition string) { a.listAgain(ctx, definition) })
	maintaining.Go(func() { a.server.configurations.RunLeader(leading) })
	if len(a.conversions) > 0 && a.waitPublished(ctx) && a.server.configurations.AwaitWritten(ctx) {
		a.waitRelisted()
	}
	a.onceConverted.Do(func() { close(a.converted) })
	err := work(ctx)
	if !isLost() {
		if !a.stays {
			removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), unpublishTimeout)
			if err := a.server.configurations.Cleanup(removing); err != nil {
				a.logger.Error(err, "The configurations of the admission handlers could not be removed from the cluster.")
			}
			cancel()
		}
		a.linger() // handlers must not be called after the cleanup handlers
	}
	stop()
	maintaining.Wait()
	a.waitRelisted()
	return err
}

// follow waits until the API server converts the objects of all definitions. Another replica, the holder of shard 0, sees to that.
// It returns false if the context is done first.
func (a *admission) follow(ctx context.Context) bool {
	if a == nil || a.server == nil || !a.follows || len(a.conversions) == 0 {
		return true
	}
	graphs := a.graphs.Load()
	for name := range *graphs {
		before, ok := a.server.configurations.AwaitConverted(ctx, name)
		if !ok || !before && !sleep.For(ctx, learning) {
			return false
		}
	}
	a.onceConverted.Do(func() { close(a.converted) })
	return true
}

// learning is how long API servers may go on to show objects without a conversion after it is in the definition.
const learning = 2 * time.Second

// relistTimeout limits how long handlers wait for the lists: one resource must not hold up all others for ever.
const relistTimeout = 30 * time.Second

// listAgain lists the objects of a definition that has got its conversion just now: those that are known were not
// converted, and lack fields. No handler must see them. It does not wait.
func (a *admission) listAgain(ctx context.Context, definition string) {
	done := make(chan struct{})
	a.mu.Lock()
	a.relists = append(a.relists, done)
	a.mu.Unlock()
	go func() {
		defer close(done)
		if sleep.For(ctx, learning) {
			a.logger.Info("The cluster did not let the operator convert objects before. They are listed again.", "definition", definition)
			ctx, cancel := context.WithTimeout(ctx, relistTimeout)
			defer cancel()
			a.relist(ctx, schema.ParseGroupResource(definition))
		}
	}()
}

// waitRelisted waits until all objects are listed again, or the operator must stop.
func (a *admission) waitRelisted() {
	a.mu.Lock()
	relists := slices.Clone(a.relists)
	a.mu.Unlock()
	for _, done := range relists {
		<-done
	}
}

// stopWith observes when the replica is asked to stop: when the context is done.
func (a *admission) stopWith(ctx context.Context) {
	if a == nil {
		return
	}
	context.AfterFunc(ctx, func() {
		close(a.stopping)
		isPersistent := func(d *handler.Declaration) bool { return d.Webhook.Persistent }
		staysRegistered := a.stays || len(a.conversions) > 0 || slices.ContainsFunc(a.handlers, isPersistent)
		if a.delay <= 0 || !a.isCalled() || !a.isPublished() || !staysRegistered { // no API server calls the handlers
			close(a.unneeded)
			return
		}
		a.logger.Info("The admission handlers go on for a while: API servers learn late that the operator stops.", "seconds", a.delay.Seconds())
		time.AfterFunc(a.delay, func() { close(a.unneeded) })
	})
}

// linger waits until no API server sends reviews anymore: all have learned that the replica stops.
func (a *admission) linger() {
	if a == nil {
		return
	}
	select {
	case <-a.unneeded:
	case <-time.After(a.delay): // it was not asked to stop
	}
}

// closing closes the connections of requests that arrive while the replica stops, after their responses.
// A client that keeps a connection open could use it in the moment in which the server closes it.
func (a *admission) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.isStopping() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// isStopping reports whether the replica was asked to stop.
func (a *admission) isStopping() bool {
	select {
	case <-a.stopping:
		return true
	default:
		return false
	}
}

// resourceMap contains the known resources of the cluster. It is safe for concurrent use.
type resourceMap struct {
	mu        sync.RWMutex
	resources map[schema.GroupVersionResource]selector.Resource
}

// update replaces the resources. It keeps the resources of unavailable API groups.
func (m *resourceMap) update(found discovery.Snapshot) {
	resources := make(map[schema.GroupVersionResource]selector.Resource, len(found.Resources))
	m.mu.Lock()
	defer m.mu.Unlock()
	for gvr, known := range m.resources {
		if _, unknown := found.Failed[gvr.GroupVersion()]; unknown {
			resources[gvr] = known
		}
	}
	for _, resource := range found.Resources {
		resources[resource.GVR()] = resource
	}
	m.resources = resources
}

func (m *resourceMap) find(gvr schema.GroupVersionResource) (selector.Resource, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	resource, found := m.resources[gvr]
	return resource, found
}

// all returns the resources in the order of their names.
func (m *resourceMap) all() []selector.Resource {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.resources), func(a, b selector.Resource) int {
		return strings.Compare(a.String(), b.String())
	})
}
