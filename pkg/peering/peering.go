package peering

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Options are what a Peering consists of.
type Options struct {
	// Settings are the operator's; what is zero has its default.
	Settings settings.Peering
	// Namespaced is for an operator that serves some namespaces, and meets its
	// peers in each of them. Otherwise they meet once for the cluster.
	Namespaced bool
	// Namespaces are those served at the beginning, if it is Namespaced.
	Namespaces []string
	// Identity is the name of our entries. Default: NewIdentity.
	Identity string
	// Lease is what the replicas of the operator elect their leader by, who alone
	// takes part: the entry of another one of them is that of a former leader, who
	// had no time to remove it. Default: none; the operator runs once.
	Lease string
	// Logger takes the log.
	Logger logr.Logger
	// Notify is told whether the operator is paused: once when that is known, and
	// then whenever it changes. The calls come one after another; they must be
	// quick, and must not call the Peering. Nothing is to be handled before the
	// first call.
	Notify func(paused bool)
}

// Peering is the part that one operator has in its peerings: in one for the
// cluster, or in one for every namespace. It is paused when any of them pauses it.
// Safe for concurrent use.
type Peering struct {
	options Options
	find    func(context.Context, Target) (peeringAPI, error)

	mu          sync.Mutex
	ctx         context.Context // of Run; nil: it does not run
	running     sync.WaitGroup
	memberships map[string]*membership // by namespace; "" is the cluster
	notified    bool
	paused      bool
}

// membership is one peering of an operator.
type membership struct {
	leave    context.CancelFunc
	decided  bool
	decision Decision
}

// New prepares the peering of an operator; it does nothing yet. The client is
// optional.
func New(config *rest.Config, client *http.Client, options Options) (*Peering, error) {
	found, err := newFinder(config, client)
	if err != nil {
		return nil, err
	}
	return newPeering(found.find, options), nil
}

func newPeering(locate func(context.Context, Target) (peeringAPI, error), options Options) *Peering {
	defaults := settings.Settings{Peering: options.Settings}.WithDefaults()
	options.Settings = defaults.Peering
	if options.Identity == "" {
		options.Identity = NewIdentity()
	}
	if !options.Namespaced {
		options.Namespaces = []string{""}
	}
	return &Peering{options: options, find: locate, memberships: map[string]*membership{}}
}

// Identity is the name of the operator among its peers.
func (p *Peering) Identity() string { return p.options.Identity }

// Run takes part in the peerings until the context is done. Then it removes the
// operator's entries, for which it takes some seconds at most, and returns; the
// operator must have stopped working before. It can be called once.
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

// RunDuring runs the work of an operator, and the peering around it: the entries are
// removed when the work has ended.
func (p *Peering) RunDuring(ctx context.Context, work func(context.Context) error) error {
	peering, leave := context.WithCancel(context.WithoutCancel(ctx))
	left := make(chan struct{})
	go func() {
		defer close(left)
		p.Run(peering)
	}()
	defer func() {
		leave()
		<-left
	}()
	return work(ctx)
}

// SetNamespaces changes the namespaces of an operator that is Namespaced: those that have
// come get an entry, and those that are gone lose it. As long as nothing is known
// of a new one, the operator is paused if the peering is mandatory.
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

// State tells whether the operator is paused, and why, for people. Before it is
// known, it counts as paused.
func (p *Peering) State() (paused bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.notified {
		return true, "the peering is not known yet"
	}
	var reasons []string
	for namespace, m := range p.memberships {
		if m.decision.Paused {
			reasons = append(reasons, m.decision.describe(Target{p.options.Settings.Name, namespace}))
		}
	}
	slices.Sort(reasons)
	return p.paused, strings.Join(reasons, "; ")
}

func (d Decision) describe(target Target) string {
	where := fmt.Sprintf("%s %q", target.kind(), target.Name) + (&NotFoundError{Namespace: target.Namespace}).inNamespace()
	if d.Reason == ReasonObjectMissing {
		return where + " is missing"
	}
	return fmt.Sprintf("%s has operators of the %s priority: %s", where, d.Reason, strings.Join(d.Peers, ", "))
}
