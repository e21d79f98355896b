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

// replica is one process of an operator: it watches, serves reviews and answers the
// kubelet (run), and handles the objects while it is the leader (runLeader). A manager
// runs the two. They end together; run ends last, because it has what the leader needs.
type replica struct {
	*components
	settings   settings.Settings
	logger     logr.Logger
	activities *activityHandlers
	ready      chan<- struct{} // closed when the operator is ready

	leadership leadership
	running    sync.WaitGroup // run
	stopped    atomic.Bool    // run has returned
}

// newReplica builds the replica on the connection of the manager, with the final
// settings.
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

// run keeps everything ready that a leader needs, until the context is done and the
// leader has finished.
func (r *replica) run(ctx context.Context) error {
	r.running.Add(1)
	defer r.running.Done()
	defer r.stopped.Store(true)
	defer r.activities.cleanUp(ctx) // unless the leader has
	if err := r.monitor.metrics.Open(); err != nil {
		return err
	}
	defer r.monitor.metrics.Close()
	if r.settings.Replicas.LeaderElection {
		r.logger.Info("This replica stands by until it gets the lease.", "lease", leaseName(r.settings.Replicas))
	}
	return ignoreStop(ctx, r.watch(ctx))
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
	return err
}

// startAuxiliaries starts what the handlers need until the last of them has returned:
// they have events to post, and reviews to answer. The context ends with the given one,
// or with the error that keeps the replica from going on. The function stops the
// auxiliaries.
func (r *replica) startAuxiliaries(ctx context.Context) (watching context.Context, stop func()) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watching, fail := context.WithCancelCause(ctx)
	var auxiliaries sync.WaitGroup
	auxiliaries.Go(func() { _ = r.recorder.Start(lasting) }) // never an error
	auxiliaries.Go(func() { r.announce(lasting) })
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

// announce makes it known when the operator is ready.
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
