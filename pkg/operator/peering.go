package operator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

// peers are the other operators of the same objects; nil: nobody looks for them.
type peers struct {
	*peering.Peering
	notify func(paused bool)
}

// newPeers finds the place where the operator meets its peers: one for the whole
// cluster, or one in each of its namespaces.
func newPeers(mgr manager.Manager, o *operator) (*peers, error) {
	s := o.settings.WithDefaults()
	if s.Peering.Standalone {
		return nil, nil //nolint:nilnil // nil is nobody
	}
	p := &peers{}
	var err error
	p.Peering, err = peering.New(mgr.GetConfig(), mgr.GetHTTPClient(), peering.Options{
		Settings: s.Peering, Logger: o.options.Logger.WithName("peering"),
		Namespaced: len(s.Scope.Namespaces) > 0, Namespaces: selector.Namespaces(s.Scope.Namespaces).Names(),
		Lease:  nameOf(leaseOf(s.Replicas)),
		Notify: func(paused bool) { p.notify(paused) },
	})
	return p, err
}

// join prepares an engine for its peers: it begins paused, until they have been
// looked at.
func (p *peers) join(config *reconcile.Config) {
	if p == nil {
		return
	}
	config.Paused = true
	if len(config.Settings.Scope.Namespaces) > 0 {
		config.Scoped = p.SetNamespaces
	}
}

// pause makes the engine pause when the peers demand it.
func (p *peers) pause(engine *reconcile.Engine) {
	if p != nil {
		p.notify = engine.SetPaused
	}
}

// around is the work of the operator, with an entry among the peers as long as it
// lasts.
func (p *peers) around(ctx context.Context, work func(context.Context) error) error {
	if p == nil {
		return work(ctx)
	}
	return p.RunDuring(ctx, work)
}
