package converge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
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
	Resources      Resources
}

// Converger applies the children of all parents of one operator. It is safe for concurrent use;
// only one call at a time is allowed for each owner.
type Converger struct {
	Config
	dynamic  dynamic.Interface // without a cache
	api      API
	lifetime context.Context
	running  sync.WaitGroup

	mu      sync.Mutex
	facts   map[Key]*fact          // by watches
	byOwner map[string][]*fact     // the same, by the hash of the owner
	states  map[string]*state      // by the hash of the owner
	owners  map[types.UID][]string // the hashes of the owners of a parent
	calls   map[caller]func()      // what calls a handler of a parent again
	streams map[streamKey]*stream
}

// New returns a Converger that is not started yet.
func New(config Config) *Converger {
	return &Converger{
		Config: config,
		facts:  map[Key]*fact{}, byOwner: map[string][]*fact{},
		states: map[string]*state{}, owners: map[types.UID][]string{}, calls: map[caller]func(){}, streams: map[streamKey]*stream{},
	}
}

// Start lets the converger work until the context is done, with a client that has no cache. The
// function waits for the end of the watches.
func (c *Converger) Start(ctx context.Context, cluster dynamic.Interface) (wait func()) {
	c.lifetime, c.dynamic = ctx, cluster
	c.api = &server{dynamic: cluster, manager: c.Manager, timeout: c.RequestTimeout}
	return c.running.Wait
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
	r := &run{Converger: c, Call: call, hashes: c.hashesOf(call.Owner), state: c.begin(call.Owner, call.Options.WaitReady, call.Drift != nil)}
	defer c.end(r.state)
	if err := r.read(ctx, wanted); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
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

// run is one call of Converge or Release.
type run struct {
	*Converger
	Call
	hashes []string // of the owner; see hashesOf
	state  *state
	wanted []*child
	keys   map[Key]bool
	// unfinished is set if a child waits for something, so that others must wait for it.
	unfinished bool
}

// read reads what the handler wants.
func (r *run) read(ctx context.Context, wanted []client.Object) error {
	r.keys = map[Key]bool{}
	var problems []error
	for _, obj := range wanted {
		ch, err := readChild(ctx, obj, r.Owner.Parent, r.Scheme, r.Resources)
		switch {
		case err != nil:
			problems = append(problems, err)
			continue
		case r.keys[ch.Key]:
			err = &convergence.ChildError{Child: ch.Key, Err: errors.New("the handler returned it twice")}
		case ch.GroupKind == r.Owner.Parent.GVK.GroupKind() && ch.Namespace == r.Owner.Parent.Key.Namespace && ch.Name == r.Owner.Parent.Key.Name:
			err = &convergence.ChildError{Child: ch.Key, Err: errors.New("it is the parent itself")}
		}
		if err != nil {
			problems = append(problems, err)
		}
		r.keys[ch.Key] = true
		r.wanted = append(r.wanted, ch)
	}
	sortChildren(r.wanted)
	return errors.Join(problems...)
}

// open stores the places of the children before anything is created there, and watches them. It
// waits for the watches of former places, so that all existing children are known.
func (r *run) open(ctx context.Context) error {
	places := convergence.Places{}
	for _, ch := range r.wanted {
		places[ch.place(r.Owner.Parent)] = struct{}{}
	}
	all := r.Places.With(places)
	if len(all) > len(r.Places) {
		if err := r.Announce(ctx, all); err != nil {
			return err
		}
	}
	streams, err := r.watch(ctx, r.Owner.Parent, r.Places)
	if err != nil {
		return err
	}
	if _, err := r.watch(ctx, r.Owner.Parent, places); err != nil {
		return err
	}
	for _, s := range streams {
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refuseEmpty protects the children from a handler that returns none by mistake.
func (r *run) refuseEmpty() error {
	if len(r.wanted) > 0 || r.Options.AllowEmpty {
		return nil
	}
	if children := len(r.candidates()); children > 0 {
		return &convergence.EmptyError{Children: children}
	}
	return nil
}

// applyWaves applies the children. It ends after a wave in which a child has failed, or in
// which the handler waits for a child.
func (r *run) applyWaves(ctx context.Context) error {
	for rest := r.wanted; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(ch *child) bool { return ch.wave != rest[0].wave })
		if n < 0 {
			n = len(rest)
		}
		if err := r.applyWave(ctx, rest[:n]); err != nil || r.unfinished {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// applyWave applies the children of one wave.
func (r *run) applyWave(ctx context.Context, wave []*child) error {
	var problems []error
	for _, ch := range wave {
		live, err := r.step(ctx, ch)
		switch {
		case err != nil:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: describeRefusal(err)})
		case live == nil || live.deleting:
			r.unfinished = true
		case !r.Options.WaitReady:
		case live.readiness == failed:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: errors.New("it has failed: " + live.detail().message)})
		case live.readiness == inProgress:
			r.unfinished = true
		}
	}
	return errors.Join(problems...)
}

// prune deletes the children that are not wanted anymore.
func (r *run) prune(ctx context.Context) error {
	err := r.deleteAll(ctx, r.candidates())
	if err == nil {
		r.retain(r.state, r.keys)
	}
	return err
}

// candidates returns the children to delete: what the operator has applied for the owner, and
// does not want anymore.
func (r *run) candidates() []*fact {
	var found []*fact
	all := r.childrenOf(r.state)
	for _, key := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		f := all[key]
		switch {
		case r.keys[key] || f.deleting || !f.isApplied() || f.isControlledByOther(r.Owner.Parent.UID):
		case f.keep || !r.Options.MayPrune(f.GroupKind):
			r.Log.V(1).Info("The child is not wanted anymore, but kept.", "child", key.String())
		default:
			found = append(found, f)
		}
	}
	return found
}

// Release deletes the children that the garbage collector does not delete with the parent.
func (c *Converger) Release(ctx context.Context, call Call) error {
	r := &run{Converger: c, Call: call, hashes: c.hashesOf(call.Owner), state: c.begin(call.Owner, false, false)}
	defer c.end(r.state)
	if err := r.open(ctx); err != nil {
		return err
	}
	candidates := slices.DeleteFunc(r.candidates(), func(f *fact) bool { return call.Owner.Parent.reaches(f.Namespace) })
	return r.deleteAll(ctx, candidates)
}
