package peering

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Options configure a Peering.
type Options struct {
	// Settings are those of the operator; zero values have their defaults.
	Settings settings.Peering
	// Namespaced means that the operator serves some namespaces and meets its peers in
	// each of them. Otherwise it meets them once for the cluster.
	Namespaced bool
	// Namespaces are the initial namespaces of a Namespaced operator.
	Namespaces []string
	// Identity names the entries of the operator. Default: that of the settings, or else
	// NewIdentity.
	Identity string
	// Lease names the lease by which the replicas of the operator elect their leader.
	// Only the leader takes part in the peering: an entry of another replica belongs to a
	// former leader that did not remove it. Default: none, for a single replica.
	Lease string
	// Silent starts without entries. Announce makes them.
	Silent bool
	// FieldManager is the field manager of the writes. Default: that of the client.
	FieldManager string
	// Logger receives the log.
	Logger logr.Logger
	// Notify is called with whether the operator is paused: once when that is known, and
	// after every change. Handlers must not run before the first call. The calls are
	// sequential; Notify must return quickly and must not call the Peering.
	Notify func(paused bool)
}

// Peering is the participation of one operator in its peerings: one for the cluster, or
// one for each namespace, in each API group. Any of them can pause the operator. It is safe
// for concurrent use.
type Peering struct {
	options Options
	find    findFunc

	mu          sync.Mutex
	ctx         context.Context // of Run; nil: not running
	running     sync.WaitGroup
	memberships map[string]*membership // by namespace; "" is the cluster
	announced   bool
	notified    bool
	paused      bool
}

// New returns a Peering that is not running yet. The client is optional.
func New(config *rest.Config, client *http.Client, options Options) (*Peering, error) {
	f, err := newFinder(config, client)
	if err != nil {
		return nil, err
	}
	f.manager = options.FieldManager
	return newPeering(f.find, options), nil
}

func newPeering(find findFunc, options Options) *Peering {
	defaults := settings.Settings{Peering: options.Settings}.WithDefaults()
	options.Settings = defaults.Peering
	if options.Identity == "" {
		options.Identity = options.Settings.Identity
	}
	if options.Identity == "" {
		options.Identity = NewIdentity()
	}
	if !options.Namespaced {
		options.Namespaces = []string{""}
	}
	return &Peering{options: options, find: find, announced: !options.Silent, memberships: map[string]*membership{}}
}

// Run takes part in the peerings until the context is done. Then it removes the entries
// of the operator, which must have stopped working before, and returns within a few
// seconds. Run can be called once.
func (p *Peering) Run(ctx context.Context) {
	p.mu.Lock()
	p.ctx = ctx
	p.syncMemberships()
	p.notifyIfChanged()
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.ctx = nil
	p.mu.Unlock()
	p.running.Wait()
}

// RunDuring runs the work of an operator, and takes part in the peerings until the work
// has returned.
func (p *Peering) RunDuring(ctx context.Context, work func(context.Context) error) error {
	peering, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Run(peering)
	}()
	defer func() {
		stop()
		<-stopped
	}()
	return work(ctx)
}

// Announce makes or removes the entries of the operator. It does not wait. Peers do not know of an operator without
// entries, but it can be paused by theirs.
func (p *Peering) Announce(announced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.announced = announced
	for _, membership := range p.memberships {
		for _, m := range membership.members {
			m.announce(announced)
		}
	}
}

// Discovered looks for peering objects at once if their resources were missing, and are among those
// that the cluster serves.
func (p *Peering) Discovered(resources []selector.Resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, membership := range p.memberships {
		for _, m := range membership.members {
			m.observeServed(resources)
		}
	}
}

// SetNamespaces changes the namespaces of a Namespaced operator: new namespaces get an
// entry, removed ones lose it. If the peering is mandatory, the operator is paused until
// the state of a new namespace is known.
func (p *Peering) SetNamespaces(namespaces []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.options.Namespaced {
		return
	}
	p.options.Namespaces = slices.Clone(namespaces)
	p.syncMemberships()
	p.notifyIfChanged()
}
