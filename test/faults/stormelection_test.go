package faults

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/settings"
)

// In storms with elections, a replica on standby watches the objects all the time. It takes over
// when the leader dies, stops, or loses its lease to a thief. A busy machine can be too slow for
// these times; then the leader loses its lease, too.
const (
	stormLease    = 1500 * time.Millisecond
	stormDeadline = time.Second
	stormRetry    = 100 * time.Millisecond
)

// replica is the process of one operator that takes part in elections, and can lose.
type replica struct {
	running *kopf.Operator
	cancel  context.CancelFunc
	done    chan struct{}
}

// startReplica starts a replica. The function is called when it ends.
func startReplica(options kopf.Options, end func(error)) (*replica, error) {
	running, err := kopf.NewOperator(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{running: running, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		end(running.Run(ctx))
	}()
	return r, nil
}

// State returns the state of the operator.
func (r *replica) State() kopf.OperatorState { return r.running.State() }

// Stop stops the replica, and waits until it has ended.
func (r *replica) Stop() {
	r.cancel()
	<-r.done
}

// endReplicas ends the leader and the replica on standby.
func (s *storm) endReplicas() {
	for _, o := range []*stormOperator{s.standby.Load(), s.operator} {
		if o != nil && s.elects {
			o.end()
		}
	}
}

// candidacy says whether an operator leads.
type candidacy struct {
	leads  atomic.Bool
	chosen chan struct{} // closed when it leads
}

// electing returns the settings of replicas.
func (s *storm) electing() settings.Replicas {
	if s.shards > 0 {
		return s.sharing()
	}
	return settings.Replicas{
		LeaderElection: s.elects, LeaseName: leaseName, LeaseNamespace: s.namespace,
		LeaseDuration: stormLease, RenewDeadline: stormDeadline, RetryPeriod: stormRetry,
	}
}

// lead makes the operator the leader: the one before is dead.
func (o *stormOperator) lead() {
	if !o.leads.Swap(true) {
		close(o.chosen)
	}
}

// lease sends a request for the lease. A replica on standby can take it when the storm knows that
// the leader is dead, so that the order of events is known.
func (o *stormOperator) lease(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	o.noteMember(sent)
	if sent.Method != http.MethodGet {
		select {
		case <-o.chosen:
		case <-sent.Context().Done():
			return nil, sent.Context().Err()
		}
	}
	return next.RoundTrip(sent)
}

// mostThefts limits how often the lease is stolen in a storm: it takes seconds each time.
const mostThefts = 3

// steal gives the lease to a thief, so that the leader must stop at once.
func (s *storm) steal() {
	if s.thefts++; s.thefts > mostThefts {
		return
	}
	lease := &coordinationv1.Lease{}
	ctx, key := context.Background(), client.ObjectKey{Namespace: s.namespace, Name: leaseName}
	if s.cluster.Client().Get(ctx, key, lease) != nil {
		return // nobody has led yet
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("a thief"), new(int32(1))
	now := metav1.NowMicro()
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	if s.cluster.Client().Update(ctx, lease) == nil { // otherwise, the leader was faster
		s.note("a thief has the lease of %s", s.operator.name)
	}
}

// hasStandby reports whether another replica waits for the end of the operator.
func (w *stormWrite) hasStandby() bool { return w.storm.standby.Load() != nil && w.leads.Load() }

// blindStandby lets the replica on standby see nothing new until it leads.
func (w *stormWrite) blindStandby() {
	if standby := w.storm.standby.Load(); standby != nil {
		w.storm.note("the watches of %s stall until it leads", standby.name)
		standby.watches.shut()
	}
}
