package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/shards"
	"github.com/kopf-go/kopf/pkg/shards/ring"
)

// The replicas of an operator with shards share its work, and none leads. Each of them works all the time, on the objects of
// the shards that it holds. What one replica must do for all belongs to the holder of shard 0:
//
//	share → ring.Run → hold → Engine.HoldShard
//	                        → the webhook configurations and the entry in the peering, with shard 0
//	      → Engine.Work

// divisionOf returns how the settings divide the objects.
func divisionOf(r settings.Replicas) shards.Division {
	return shards.Division{Number: r.Shards, ByNamespace: r.ShardKey == settings.ShardByNamespace}
}

// newRing returns the ring of a replica with shards.
func (r *replica) newRing(mgr manager.Manager) (*ring.Ring, error) {
	leases, err := coordinationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("the cluster cannot be reached: %w", err)
	}
	s := r.settings.Replicas
	lease := leaseOf(s)
	if lease.Namespace == "" {
		return nil, errors.New("the operator cannot share its work by shards: outside a cluster, set settings.Replicas.LeaseNamespace (--lease-namespace)")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("the replica has no name for its leases: %w", err)
	}
	return ring.New(ring.Config{
		Client: leases, Namespace: lease.Namespace, Name: lease.Name, Identity: host + "_" + string(uuid.NewUUID()),
		Division: divisionOf(s), LeaseDuration: s.LeaseDuration, RenewDeadline: s.RenewDeadline, RetryPeriod: s.RetryPeriod,
		Logger: r.logger.WithName("shards"), Hold: r.hold,
	})
}

// share handles the objects of the shards that this replica gets, until the context is done and no handler is running. It
// returns an error if other replicas divide the objects in another way.
func (r *replica) share(ctx context.Context) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer r.operator.cleanUp(ctx)
	var sharing sync.WaitGroup
	var refused error
	sharing.Go(func() {
		defer stop()
		refused = r.ring.Run(working)
	})
	err := r.work(working)
	stop()
	sharing.Wait()
	return errors.Join(refused, err)
}

// hold handles the objects of a shard while this replica holds it.
func (r *replica) hold(ctx context.Context, shard int, lease ring.Validity) {
	select {
	case <-r.engine.Ready():
	case <-ctx.Done():
		return
	}
	if shard != 0 {
		if r.admission.follow(ctx) {
			r.engine.HoldShard(ctx, shard, lease)
		}
		return
	}
	if r.peering != nil {
		r.peering.Announce(true)
		defer r.peering.Announce(false)
	}
	// The next holder goes on with the configurations, unless all replicas stop.
	isNext := func() bool { return !r.isRequested() }
	_ = r.admission.maintain(ctx, isNext, func(ctx context.Context) error {
		r.engine.HoldShard(ctx, shard, lease)
		return nil
	})
}

// shards returns what this replica knows of the shards, without the objects.
func (r *replica) shards() *metrics.Shards {
	now := time.Now()
	known := r.ring.State()
	state := &metrics.Shards{
		Number: len(known.Shards), Replicas: len(known.Members), Joined: known.Joined, Leader: known.Leader, Assigned: known.Assigned.Len(),
		Taken: known.Taken, Given: known.Given, Losses: known.Lost, LeaseWrites: known.Writes,
	}
	for shard, one := range known.Shards {
		switch {
		case !one.Handled:
		case one.Lost:
			state.Lost = state.Lost.With(shard)
		case one.Draining.IsZero():
			state.Held = state.Held.With(shard)
		case now.Sub(one.Draining) > r.settings.Execution.GracePeriod+reconcile.DrainDelay:
			state.Overdue = state.Overdue.With(shard)
		default:
			state.Draining = state.Draining.With(shard)
		}
		if !one.Free.IsZero() {
			state.Unheld++
			state.Longest = max(state.Longest, now.Sub(one.Free))
		}
	}
	return state
}

// isRequested reports whether the operator was asked to stop.
func (r *replica) isRequested() bool { return r.requested != nil && r.requested.Err() != nil }

// electionPatience is how long the manager of another program that elects no leader can need to start everything else.
const electionPatience = 30 * time.Second

// refuseElection returns an error if the manager of another program elects a leader, and another process is the leader: this
// one would handle no objects. A manager that elects no leader counts as elected when it has started everything.
func refuseElection(ctx context.Context, elected <-chan struct{}) error {
	select {
	case <-elected:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(electionPatience):
		return errors.New("an operator with settings.Replicas.Shards cannot be in a manager that elects a leader: only the leader would handle objects. " +
			"Unset LeaderElection in the options of the manager, and run controllers that need a leader in another manager")
	}
}
