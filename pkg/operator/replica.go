package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/health"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/page"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/recording"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// replica is one process of an operator: it watches, serves reviews, and serves the health
// endpoints (run), and handles the objects while it is the leader (runLeader). A manager
// runs both. They end together; run ends last, because the leader depends on it.
type replica struct {
	operator *Operator
	settings settings.Settings
	logger   logr.Logger

	engine    *reconcile.Engine
	ring      *ring.Ring       // nil without shards
	peering   *peering.Peering // nil if it runs standalone
	admission *admission       // nil without admission handlers
	reviews   http.Handler     // answers admission reviews
	recorder  *events.Recorder // nil if no events are posted
	page      *page.Page       // nil if it is not served

	// requested is the context of Run, which ends when the operator is asked to stop. It is
	// nil in the manager of another program.
	requested context.Context

	leadership leadership
	running    sync.WaitGroup // waits for run
	stopped    atomic.Bool    // run has returned
}

// newReplica builds the replica with the connection of the manager and the final settings.
func (o *Operator) newReplica(mgr manager.Manager) (*replica, error) {
	s := o.settings.WithDefaults()
	r := &replica{operator: o, settings: s, logger: o.options.Logger}
	connected := o.connected(mgr, s)
	resources, err := discovery.NewSource(mgr.GetConfig(), connected)
	if err != nil {
		return nil, err
	}
	if !s.Posting.Disabled {
		clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), connected)
		if err != nil {
			return nil, fmt.Errorf("the cluster cannot be reached: %w", err)
		}
		r.recorder = events.New(clientset.CoreV1(), events.Options{
			Component: eventComponent(s), Instance: s.Posting.Instance, NamePrefix: s.Posting.EventNamePrefix,
			Level: s.Posting.Level, Burst: s.Posting.Burst, Refill: s.Posting.Refill,
			Logger: r.logger.WithName("events"), Scheme: mgr.GetScheme(),
		})
	}
	// The servers of controller-runtime serve the metrics of its registry.
	measured, err := metrics.New(crmetrics.Registry, operatorName(s))
	if err != nil {
		return nil, err
	}
	var recorded *recording.Recorder
	if s.Recording.File != "" {
		r.logger.Info("The operator records what it sees.", "file", s.Recording.File)
		recorded, err = recording.Open(recording.Options{
			File: s.Recording.File, Fields: s.Recording.Fields, Handlers: o.handlers, Logger: r.logger,
			DiffBase: s.Persistence.DiffBase, Progress: s.Persistence.Progress,
		})
		if err != nil {
			return nil, err
		}
	}
	call := callContext{client: mgr.GetClient(), recorder: r.recorder}
	config := reconcile.Config{
		Handlers: o.handlers, Settings: s, Logger: r.logger, Memos: o.memos,
		REST: mgr.GetConfig(), HTTP: connected, Client: mgr.GetClient(),
		Resources: resources, Poster: r.recorder, Metrics: measured, Context: call.add,
		Division: divisionOf(s.Replicas), Recorder: recorded, Tracer: guardTracer(o.options.Tracer, r.logger),
	}
	if !s.Peering.Standalone {
		namespaces, followsScope := peering.NamespacesOf(s)
		r.peering, err = peering.New(mgr.GetConfig(), mgr.GetHTTPClient(), peering.Options{
			Settings: s.Peering, Logger: r.logger.WithName("peering"),
			Namespaced: followsScope || len(namespaces) > 0, Namespaces: namespaces,
			Lease: leaseName(s.Replicas), Silent: s.Replicas.Shards > 0, FieldManager: fieldManager(s),
			Notify: func(paused bool) { r.engine.SetPaused(paused) },
		})
		if err != nil {
			return nil, err
		}
		config.Paused = true // until the peers are known
		if followsScope {
			config.Scoped = r.peering.SetNamespaces
		}
	}
	r.admission, err = o.newAdmission(mgr, s)
	if err != nil {
		return nil, err
	}
	config.Discovered = func(present discovery.Snapshot) {
		o.permissions.Discovered(present)
		if r.admission != nil {
			r.admission.discovered(present)
		}
		if r.peering != nil { // the resource of its objects can appear later
			r.peering.Discovered(present.Resources)
		}
	}
	r.engine = reconcile.New(config)
	if s.Replicas.Shards > 0 {
		r.ring, err = r.newRing(mgr)
		if err != nil {
			return nil, err
		}
	}
	if err := r.addActivity(mgr); err != nil {
		return nil, err
	}
	r.page, err = r.newPage(mgr, connected)
	if err != nil {
		return nil, err
	}
	r.engine.Metrics.Observe(r.state)
	r.reviews = r.admission.newReviews(r.engine)
	o.replica.Store(r)
	close(o.hasReplica)
	return r, nil
}

// run provides everything that a leader needs until the context is done and the leader has
// finished.
func (r *replica) run(ctx context.Context) error {
	r.running.Add(1)
	defer r.running.Done()
	defer r.stopped.Store(true)
	defer r.operator.cleanUp(ctx) // unless the leader has called it
	if err := r.engine.Metrics.Open(); err != nil {
		return err
	}
	defer r.engine.Metrics.Close()
	if r.admission != nil {
		for _, d := range r.admission.handlers { // so that the first failure is an increase
			r.engine.Metrics.Reviewing(string(d.Kind), d.ID)
		}
	}
	r.admission.stopWith(ctx)
	if r.settings.Replicas.LeaderElection {
		lease := leaseName(r.settings.Replicas)
		r.logger.Info("This replica is on standby until it gets the lease.", "lease", lease)
		if r.settings.Replicas.LeaseName == settings.DefaultLeaseName { // nothing else would say why it stands by
			r.logger.Info("The lease has the default name. Another operator in this namespace with the default name would stand by forever: "+
				"give each operator a name with settings.Name, or its lease with --lease-name (settings.Replicas.LeaseName).", "lease", lease)
		}
	}

	// Keep the objects in memory.
	watching, stopServices := r.startServices(ctx)
	defer stopServices()
	err := r.engine.Watch(watching)
	if ctx.Err() == nil {
		err = errors.Join(err, context.Cause(watching))
	}
	_ = r.leadership.end() // runLeader returns the same error
	if ctx.Err() != nil {
		r.admission.linger()
	}
	return ignoreStop(ctx, err)
}

// startServices starts the services that handlers need until the last of them has
// returned: posting events, serving reviews, the page, and the health endpoints. The context ends with the given one, or with
// an error that prevents the replica from continuing. The function stops the services.
func (r *replica) startServices(ctx context.Context) (watching context.Context, stop func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watching, fail := context.WithCancelCause(ctx)
	var services sync.WaitGroup
	services.Go(func() { _ = r.recorder.Start(lasting) }) // never fails
	services.Go(func() { r.operator.permissions.Run(lasting) })
	services.Go(func() {
		select {
		case <-r.engine.Ready():
		case <-lasting.Done():
			return
		}
		if r.admission.waitPublished(lasting) && r.admission.waitConverted(lasting) {
			close(r.operator.ready)
		}
	})
	services.Go(func() {
		if r.settings.Health.Address == "" {
			return
		}
		endpoints := health.New(health.Options{
			Settings: r.settings.Health, Probes: r.operator.probe, Operator: r.health(), Logger: r.logger.WithName("health"),
		})
		if err := endpoints.Start(lasting); err != nil {
			fail(err)
		}
	})
	// These call code of users, and need not return.
	var calling sync.WaitGroup
	calling.Go(func() {
		if err := r.admission.serve(lasting, r.reviews); err != nil {
			fail(err)
		}
	})
	calling.Go(func() {
		if r.page == nil {
			return
		}
		if err := r.servePage(lasting); err != nil {
			fail(err)
		}
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		calling.Wait()
	}()
	return watching, func() {
		fail(nil)
		cancel()
		services.Wait()
		select {
		case <-served:
		case <-time.After(2 * reserve):
			r.logger.Info("Some admission handlers, or filters that the page calls, have not returned although they were canceled; they are abandoned.")
		}
	}
}

// runLeader handles the objects until the context is done and no handler is running.
// Afterwards, the shutdown ends, in this order: the configurations of the admission
// handlers, the cleanup handlers, the entry in the peering, and the lease, which belongs to
// the manager.
//
// If the lease is lost, handlers get no grace period.
func (r *replica) runLeader(ctx context.Context) (err error) {
	if r.settings.Replicas.LeaderElection {
		r.logger.Info("This replica is the leader and handles the objects.")
	}
	leading, resign := r.leadership.begin(r.abortIfLost(ctx))
	defer func() { resign(err) }()
	lead := func(leading context.Context) error {
		if r.ring != nil {
			return r.share(leading)
		}
		defer r.operator.cleanUp(leading)
		return r.admission.maintain(leading, func() bool { return r.waitLost(ctx) }, r.work)
	}
	if r.peering == nil {
		return lead(leading)
	}
	return r.peering.RunDuring(leading, lead)
}

// errLeadershipLost is the cause of the contexts of handlers after the lease was lost.
var errLeadershipLost = errors.New("leader election lost")

// abortIfLost returns a context that ends with the manager's. If the lease is lost, it aborts
// the engine before: no handler must take that for a stop, and continue.
func (r *replica) abortIfLost(manager context.Context) context.Context {
	leading, cancel := context.WithCancel(context.WithoutCancel(manager))
	context.AfterFunc(manager, func() {
		defer cancel()
		if isLeaseLost(manager, r.requested, r.stopped.Load()) {
			r.logger.Info("The leadership is lost: all handlers are canceled, and the next leader continues their work.")
			r.engine.Abort(errLeadershipLost)
		}
	})
	return leading
}

// isLeaseLost reports whether the manager has ended the leadership without a request to
// stop. The manager of another program does not say whether there was one; but when it stops, it
// waits for run before it ends the leadership. It does not wait if the lease is lost, or if its
// patience is over, so that it gives the lease up.
func isLeaseLost(manager, requested context.Context, stopped bool) bool {
	return manager.Err() != nil && !stopped && (requested == nil || requested.Err() == nil)
}

// lossDelay is how much later than run the manager of another program that has lost its lease ends the
// leadership, at most, on a machine that is busy.
const lossDelay = time.Second

// waitLost reports whether the leadership is lost. The end of run can be the first sign. In the manager of
// the operator itself, nothing else ends run without a request to stop, except a failure; what belongs to
// the leadership is left to the next leader then, too.
func (r *replica) waitLost(manager context.Context) bool {
	if r.requested != nil {
		return r.engine.IsAborted() || r.settings.Replicas.LeaderElection && r.requested.Err() == nil
	}
	select {
	case <-manager.Done():
	case <-time.After(lossDelay):
	}
	return r.engine.IsAborted() || isLeaseLost(manager, r.requested, r.stopped.Load())
}

// reserve is the time for final writes and events after the grace period of the handlers.
const reserve = 5 * time.Second

// work handles the objects. It abandons handlers that do not return after they are canceled:
// nothing can stop them, and the others must not wait for them.
func (r *replica) work(ctx context.Context) error {
	grace := r.settings.Execution.GracePeriod
	done := make(chan error, 1)
	go func() { done <- r.engine.Work(ctx) }()
	late, stop := after(ctx, grace+reserve)
	defer stop()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("some handlers have not returned after the grace period of %s, although they were canceled: they are abandoned", grace)
	}
}

// errNotStopped means that code of users has not returned.
var errNotStopped = errors.New("the operator did not stop in time: its running parts are abandoned")

// shutDown waits until the replica has stopped, after its manager has returned the error. A
// manager that has lost its lease does not wait for that; a manager that was stopped has
// waited for the ShutdownTimeout.
func (r *replica) shutDown(ctx context.Context, err error) error {
	patience := r.settings.Execution.ShutdownTimeout
	if ctx.Err() != nil {
		patience = reserve
	}
	done := make(chan error, 1)
	go func() { done <- r.waitStopped(ctx, err) }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errors.Join(err, errNotStopped)
	}
}

// waitStopped waits until the leader and the servers of the replica have stopped. A manager
// returns an error if it cannot continue. Another replica may handle the objects by now, so the
// engine aborts, unless abortIfLost has done that: handlers get no grace period, and their
// edits are not written.
func (r *replica) waitStopped(ctx context.Context, err error) error {
	if err != nil {
		r.engine.Abort(err)
	}
	leaderErr := r.leadership.end()
	r.running.Wait()
	r.operator.cleanUp(ctx)
	if err == nil {
		err = leaderErr // a stopped manager does not return it
	}
	if r.operator.cleanupIgnored {
		err = errors.Join(err, errNotStopped)
	}
	return err
}

// leadership is the time during which a replica leads, at most once. The zero value is ready
// to use.
type leadership struct {
	mu     sync.Mutex
	ended  bool
	cancel context.CancelFunc // asks the leader to stop; nil without a leader
	over   chan struct{}      // closed when the leader has stopped
	err    error              // the result of the leader
}

// begin starts the leadership. The context ends with the given one, or when end is called,
// even if it was called before. The leader calls resign when it has stopped.
func (l *leadership) begin(ctx context.Context) (leading context.Context, resign func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if l.ended {
		cancel()
	}
	over := make(chan struct{})
	l.cancel = cancel
	l.over = over
	return ctx, func(err error) {
		cancel()
		l.err = err
		close(over)
	}
}

// end asks the leader to stop, and waits until it has stopped. It prevents further
// leaderships. It returns the error of the leader, or nil if there was none.
func (l *leadership) end() error {
	l.mu.Lock()
	l.ended = true
	cancel := l.cancel
	over := l.over
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	<-over
	return l.err
}
