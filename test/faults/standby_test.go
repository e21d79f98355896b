package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// The times of an election are long enough for a busy machine.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 200 * time.Millisecond
	leaseName     = "operator"
)

// TestStandby lets a replica take over that has watched all the time, and whose watch has
// stalled before the last write of its predecessor.
func TestStandby(t *testing.T) {
	only := chosenPlan(t)
	for _, name := range []string{"life", "retries"} {
		if only.scenario != "" && name != only.scenario {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := baseline(t, name)
			for k := range without.requests {
				if p := (plan{name, k + 1, "crash-standby"}); only.fault == "" || p == only {
					try(t, p, without)
				}
			}
		})
	}
}

// elected is an operator in a manager with leader election.
type elected struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Stop stops the operator and waits until it has stopped completely.
func (e elected) Stop() {
	e.cancel()
	<-e.done
}

// startElected starts a replica, which leads if it is the first one. It ignores the outcome of
// its manager, which fails when it loses its lease.
func (r *run) startElected(config *rest.Config, registry *kopf.Registry, options kopf.Options) elected {
	ctx, cancel := context.WithCancel(context.Background())
	replica := elected{cancel, make(chan struct{})}
	options.Settings.Networking.QPS = 0 // the manager decides this
	mgr, err := ctrl.NewManager(config, electing(r.object.GetNamespace()))
	if err == nil {
		_, err = kopf.Add(mgr, kopf.Options{Registry: registry, Settings: options.Settings})
	}
	r.do(err)
	go func() {
		defer close(replica.done)
		_ = mgr.Start(ctx)
	}()
	r.t.Cleanup(replica.Stop)
	return replica
}

func electing(namespace string) ctrl.Options {
	return ctrl.Options{
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: namespace,
		LeaseDuration: new(leaseDuration), RenewDeadline: new(renewDeadline), RetryPeriod: new(retryPeriod),
		Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

// startReplicas starts two replicas: the first one leads, the other one watches.
func (r *run) startReplicas() {
	r.start()
	r.wait("a leader", func() bool { r.leader = r.holder(); return r.leader != "" })
	r.start()
	r.standby = r.operators[len(r.operators)-1]
	r.wait("a watch of the standby", r.standby.watches.began)
}

// holder returns the leader, or "" if there is none.
func (r *run) holder() string {
	lease := &coordinationv1.Lease{}
	err := cluster.Client().Get(r.t.Context(), client.ObjectKey{Namespace: r.object.GetNamespace(), Name: leaseName}, lease)
	if err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// awaited reports whether a standby has not taken over yet.
func (r *run) awaited() bool {
	if r.standby == nil || !r.past.Load() || r.leader == "" {
		return false
	}
	if r.holder() == r.leader {
		return true
	}
	r.leader = ""
	r.history.note("%s leads", r.standby.name)
	return false
}

func (r *run) wait(what string, condition func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			r.t.Fatal(fmt.Errorf("%s: no %s after %s", r.plan, what, patience))
		}
	}
}
