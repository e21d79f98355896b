package converge

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// Config is what a Converger needs.
type Config struct {
	// Manager is the field manager: the name of the operator.
	Manager string
	// FormerManagers are its former names. The children that it has applied under them are its
	// children.
	FormerManagers []string
	// Scheme has the Go types of typed children.
	Scheme *runtime.Scheme
	// Delays are the pauses between restorations of a child that another client keeps
	// changing. None means that there are no pauses.
	Delays []time.Duration
	// RequestTimeout limits each request.
	RequestTimeout time.Duration
	// Resources finds the resources of children, and Watches watches them.
	Resources *watch.Kinds
	Watches   *watch.Watcher
	// Seen is told the parent and the handler of each child that appears, as its annotation has
	// them. It must be quick.
	Seen    func(parent, handler string)
	Metrics *metrics.Metrics // nil disables metrics
}

// Converger applies the children of all parents of one operator. It is safe for concurrent use;
// only one call at a time is allowed for each owner.
type Converger struct {
	Config
	api API

	mu      sync.Mutex
	facts   map[Key]*fact          // by watches
	byOwner map[string][]*fact     // the same, by the hash of the owner
	states  map[string]*state      // by the hash of the owner
	owners  map[types.UID][]string // the hashes of the owners of a parent
	calls   map[caller]func()      // what calls a handler of a parent again
}

// New returns a Converger that is not started yet.
func New(config Config) *Converger {
	return &Converger{
		Config: config,
		facts:  map[Key]*fact{}, byOwner: map[string][]*fact{},
		states: map[string]*state{}, owners: map[types.UID][]string{}, calls: map[caller]func(){},
	}
}

// Start lets the converger work with a client that has no cache.
func (c *Converger) Start(cluster dynamic.Interface) {
	c.api = &server{dynamic: cluster, manager: c.Manager, timeout: c.RequestTimeout}
}

// ObserveChild takes in a new version of a child, or the last one of a child that is gone or has lost its label.
func (c *Converger) ObserveChild(child *unstructured.Unstructured, gone bool) {
	c.observe(c.factOf(child), gone)
}

// ReplaceChildren takes in all the children that a watch covers; see watch.Consumer.
func (c *Converger) ReplaceChildren(covers func(Key) bool, all []*unstructured.Unstructured, version string, another bool) {
	facts := make([]*fact, len(all))
	for i, child := range all {
		facts[i] = c.factOf(child)
	}
	c.replace(covers, facts, version, another)
}

// Call is one call of a handler.
type Call struct {
	Owner   Owner
	Options *convergence.Options
	// Places are those that are stored on the parent.
	Places convergence.Places
	// Announce stores more places on the parent, and adds the finalizer if the garbage
	// collector does not reach all of them.
	Announce func(ctx context.Context, all convergence.Places) error
	// IsDeclared reports whether the operator has a handler of children with the id.
	IsDeclared func(handler string) bool
	// Drift decides about what others have changed in a child, before that is restored. Nil
	// restores everything, without a request for the details.
	Drift func(ctx context.Context, r selector.Resource, drift convergence.Drift) (convergence.Resolution, error)
	Log   logr.Logger
}

// Converge makes the children of an owner what its handler wants. It applies whatever it can,
// and returns the errors of the others together.
func (c *Converger) Converge(ctx context.Context, call Call, wanted []client.Object) error {
	r := newRun(c, call, c.begin(call.Owner, call.Options, call.Drift != nil))
	defer r.end()
	if err := r.read(ctx, wanted); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.settleDoubts(ctx); err != nil {
		return err
	}
	if err := r.refuseEmpty(); err != nil {
		return err
	}
	if err := r.applyWaves(ctx); err != nil {
		return err
	}
	if r.unfinished {
		return nil // an event of a child triggers the next call
	}
	return r.prune(ctx)
}

// Release deletes the children that the garbage collector does not delete with the parent.
func (c *Converger) Release(ctx context.Context, call Call) error {
	r := newRun(c, call, c.begin(call.Owner, &convergence.Options{}, false))
	defer r.end()
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.settleDoubts(ctx); err != nil {
		return err
	}
	candidates := slices.DeleteFunc(r.candidates(), func(f *fact) bool { return call.Owner.Parent.reaches(f.Namespace) })
	return r.deleteAll(ctx, candidates)
}
