package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/kopf/selector"
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
func newPeers(mgr manager.Manager, options Options) (*peers, error) {
	s := options.Settings.WithDefaults()
	if s.Peering.Standalone {
		return nil, nil //nolint:nilnil // nil is nobody
	}
	p := &peers{}
	var err error
	p.Peering, err = peering.New(mgr.GetConfig(), mgr.GetHTTPClient(), peering.Options{
		Settings: s.Peering, Logger: options.Logger.WithName("peering"),
		Namespaced: len(s.Scope.Namespaces) > 0, Namespaces: selector.Namespaces(s.Scope.Namespaces).Names(),
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
		config.Scoped = p.Serve
	}
}

// around is the work of the operator, with an entry among the peers as long as it
// lasts.
func (p *peers) around(engine *reconcile.Engine) func(context.Context) error {
	if p == nil {
		return engine.Work
	}
	p.notify = engine.SetPaused
	return func(ctx context.Context) error { return p.Around(ctx, engine.Work) }
}
