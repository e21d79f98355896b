package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// peeringMember is the operator's participation in its peerings: one for the cluster, or one
// for each namespace. It is nil if the operator runs standalone.
type peeringMember struct {
	*peering.Peering
	followsScope bool // it has a peering for each namespace that the operator serves
}

// newPeeringMember prepares the peering. It calls notify when other operators pause or
// resume this one.
func newPeeringMember(mgr manager.Manager, o *Operator, s settings.Settings, notify func(paused bool)) (*peeringMember, error) {
	if s.Peering.Standalone {
		return nil, nil //nolint:nilnil // nil is an operator without peers
	}
	namespaces, followsScope := peering.NamespacesOf(s)
	member, err := peering.New(mgr.GetConfig(), mgr.GetHTTPClient(), peering.Options{
		Settings: s.Peering, Logger: o.options.Logger.WithName("peering"),
		Namespaced: followsScope || len(namespaces) > 0, Namespaces: namespaces,
		Lease: leaseName(s.Replicas), FieldManager: fieldManager(s),
		Notify: notify,
	})
	return &peeringMember{member, followsScope}, err
}

// startPaused configures the engine to start paused until the peers are known, and to report
// its namespaces to the peering, and the resources: that of the peering can appear later.
func (p *peeringMember) startPaused(engine *reconcile.Config) {
	if p == nil {
		return
	}
	engine.Paused = true
	addDiscovered(engine, func(present discovery.Snapshot) { p.Discovered(present.Resources) })
	if p.followsScope {
		engine.Scoped = p.SetNamespaces
	}
}

// during runs the work of a leader, which has an entry in the peering until the work has
// ended.
func (p *peeringMember) during(ctx context.Context, work func(context.Context) error) error {
	if p == nil {
		return work(ctx)
	}
	return p.RunDuring(ctx, work)
}
