package operator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/settings"
)

// replica is one process of an operator: it watches, serves reviews, and serves the health
// endpoints (run), and handles the objects while it is the leader (runLeader). A manager
// runs both. They end together; run ends last, because the leader depends on it.
type replica struct {
	*components
	settings   settings.Settings
	logger     logr.Logger
	activities *activityHandlers
	ready      chan<- struct{} // closed when the operator is ready
	// requested is the context of Run, which ends when the operator is asked to stop. It is
	// nil in the manager of another program.
	requested context.Context

	leadership leadership
	running    sync.WaitGroup // waits for run
	stopped    atomic.Bool    // run has returned
}

// newReplica creates the replica with the connection of the manager and the final settings.
func (o *Operator) newReplica(mgr manager.Manager, a *activityHandlers) (*replica, error) {
	built, err := o.newComponents(mgr, a)
	if err != nil {
		return nil, err
	}
	r := &replica{
		components: built, settings: o.settings.WithDefaults(), logger: o.options.Logger,
		activities: a, ready: o.ready,
	}
	o.replica.set(r)
	return r, nil
}

// run provides everything that a leader needs until the context is done and the leader has
// finished.
func (r *replica) run(ctx context.Context) error {
	r.running.Add(1)
	defer r.running.Done()
	defer r.stopped.Store(true)
	defer r.activities.cleanUp(ctx) // unless the leader has called it
	if err := r.monitor.metrics.Open(); err != nil {
		return err
	}
	defer r.monitor.metrics.Close()
	r.admission.beginSeries(r.monitor.metrics)
	r.admission.stopWith(ctx)
	if r.settings.Replicas.LeaderElection {
		r.logger.Info("This replica is on standby until it gets the lease.", "lease", leaseName(r.settings.Replicas))
		r.warnOfDefaults()
	}
	return ignoreStop(ctx, r.watch(ctx))
}

// warnOfDefaults reports that another operator could have the same lease: it would stand by
// forever, and nothing else would say why.
func (r *replica) warnOfDefaults() {
	if r.settings.Replicas.LeaseName == settings.DefaultLeaseName {
		r.logger.Info("The lease has the default name. Another operator in this namespace with the default name would stand by forever: "+
			"give each operator a name with settings.Name, or its lease with --lease-name (settings.Replicas.LeaseName).", "lease", leaseName(r.settings.Replicas))
	}
}

// watch keeps the objects in memory.
func (r *replica) watch(ctx context.Context) error {
	watching, stopAuxiliaries := r.startAuxiliaries(ctx)
	defer stopAuxiliaries()
	err := r.engine.Watch(watching)
	if ctx.Err() == nil {
		err = errors.Join(err, context.Cause(watching))
	}
	_ = r.leadership.end() // runLeader returns the same error
	if ctx.Err() != nil {
		r.admission.linger()
	}
	return err
}

// startAuxiliaries starts the services that handlers need until the last of them has
// returned: posting events, serving reviews, and the health endpoints. The context ends with the given one, or with
// an error that prevents the replica from continuing. The function stops the services.
func (r *replica) startAuxiliaries(ctx context.Context) (watching context.Context, stop func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watching, fail := context.WithCancelCause(ctx)
	var auxiliaries sync.WaitGroup
	auxiliaries.Go(func() { _ = r.recorder.Start(lasting) }) // never fails
	auxiliaries.Go(func() { r.announce(lasting) })
	auxiliaries.Go(func() { r.permissions.Run(lasting) })
	auxiliaries.Go(func() {
		if err := r.monitor.serveHealth(lasting); err != nil {
			fail(err)
		}
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := r.admission.serve(lasting, r.reviews); err != nil {
			fail(err)
		}
	}()
	return watching, func() {
		fail(nil)
		cancel()
		auxiliaries.Wait()
		select {
		case <-served:
		case <-time.After(2 * reserve):
			r.logger.Info("Some admission handlers have not returned although they were canceled; they are abandoned.")
		}
	}
}

// announce reports when the operator is ready.
func (r *replica) announce(ctx context.Context) {
	select {
	case <-r.engine.Ready():
	case <-ctx.Done():
		return
	}
	if r.admission.waitPublished(ctx) {
		close(r.ready)
	}
}
