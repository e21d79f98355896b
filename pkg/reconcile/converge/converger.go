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
	"github.com/kopf-go/kopf/pkg/reconcile/internal/childwatch"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kinds"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Config is what a Converger needs.
type Config struct {
	// Manager is the field manager: the name of the operator.
	Manager string
	// FormerManagers are its former names. The children that it has applied under them are its
	// children.
	FormerManagers []string
	// Namespaces are the names or patterns to which the operator is restricted. None means the
	// whole cluster.
	Namespaces []string
	// Scheme has the Go types of typed children.
	Scheme *runtime.Scheme
	// Delays are the pauses between restorations of a child that another client keeps
	// changing. None means that there are no pauses.
	Delays []time.Duration
	// Watching has the pauses between the requests of a failing watch.
	Watching settings.Watching
	// RequestTimeout limits each request.
	RequestTimeout time.Duration
	Resources      kinds.Resources
	// Seen is told the parent and the handler of each child that appears, as its annotation has
	// them. It must be quick.
	Seen    func(parent, handler string)
	Logger  logr.Logger
	Metrics *metrics.Metrics // nil disables metrics
}

// Converger applies the children of all parents of one operator. It is safe for concurrent use;
// only one call at a time is allowed for each owner.
type Converger struct {
	Config
	api     API
	watches *childwatch.Watches

	mu      sync.Mutex
	facts   map[Key]*fact          // by watches
	byOwner map[string][]*fact     // the same, by the hash of the owner
	states  map[string]*state      // by the hash of the owner
	owners  map[types.UID][]string // the hashes of the owners of a parent
	calls   map[caller]func()      // what calls a handler of a parent again
}

// New returns a Converger that is not started yet.
func New(config Config) *Converger {
	c := &Converger{
		Config: config,
		facts:  map[Key]*fact{}, byOwner: map[string][]*fact{},
		states: map[string]*state{}, owners: map[types.UID][]string{}, calls: map[caller]func(){},
	}
	c.watches = childwatch.New(childwatch.Config{
		Namespaces: config.Namespaces, Resources: config.Resources, Watching: config.Watching, RequestTimeout: config.RequestTimeout,
		Logger: config.Logger, Metrics: config.Metrics,
		Observe: func(child *unstructured.Unstructured, gone bool) { c.observe(c.factOf(child), gone) },
		Replace: func(covers func(Key) bool, all []*unstructured.Unstructured, version string, another bool) {
			facts := make([]*fact, len(all))
			for i, child := range all {
				facts[i] = c.factOf(child)
			}
			c.replace(covers, facts, version, another)
		},
	})
	return c
}

// Start lets the converger work until the context is done, with a client that has no cache. The
// function waits for the end of the watches.
func (c *Converger) Start(ctx context.Context, cluster dynamic.Interface) (wait func()) {
	c.api = &server{dynamic: cluster, manager: c.Manager, timeout: c.RequestTimeout}
	return c.watches.Start(ctx, cluster)
}

// WatchStatuses returns the states of the watches of children.
func (c *Converger) WatchStatuses() []watch.Status {
	if c == nil {
		return nil
	}
	return c.watches.Statuses()
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
