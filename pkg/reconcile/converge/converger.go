package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// Config contains everything that a Converger needs.
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
	Tracer  tracing.Tracer   // nil disables spans
}

// Converger applies the children of all parents of one operator. It is safe for concurrent use;
// only one call at a time is allowed for each owner.
type Converger struct {
	config Config
	api    API
	store  *store
}

// New returns a Converger that is not started yet.
func New(config Config) *Converger {
	return &Converger{config: config, store: &store{
		rule: contentionRule(config.Delays), seen: config.Seen,
		facts: map[Key]*fact{}, byOwner: map[string][]*fact{},
		states: map[string]*state{}, owners: map[types.UID][]string{}, calls: map[caller]func(){},
	}}
}

// Start lets the converger work with a client that has no cache.
func (c *Converger) Start(cluster dynamic.Interface) {
	c.api = &server{dynamic: cluster, manager: c.config.Manager, timeout: c.config.RequestTimeout}
	if c.config.Tracer != nil {
		c.api = traced{c.api, c.config.Tracer}
	}
}

// ObserveChild takes in a version of a child, or the last one of a child that is gone.
func (c *Converger) ObserveChild(child *unstructured.Unstructured, gone bool) {
	c.store.observe(readFact(child, c.config.Manager, c.config.FormerManagers...), gone)
}

// ReplaceChildren takes in the complete list of a watch, with its version. Another is set if it
// belongs to another history of the cluster.
func (c *Converger) ReplaceChildren(covers func(Key) bool, all []*unstructured.Unstructured, version string, another bool) {
	facts := make([]*fact, len(all))
	for i, child := range all {
		facts[i] = readFact(child, c.config.Manager, c.config.FormerManagers...)
	}
	c.store.replace(covers, facts, version, another)
}

// LeaveChildren forgets the children of objects that another replica handles, as the function says of their controllers.
func (c *Converger) LeaveChildren(isOurs func(namespace string, controller types.UID) bool) {
	if c != nil {
		c.store.leave(isOurs)
	}
}

// Follow calls a function whenever the handler of a parent must be called because of what others
// have done to the children, until it is stopped. It is called without locks.
func (c *Converger) Follow(parent types.UID, handler string, call func()) (stop func()) {
	s := c.store
	key := caller{parent, handler}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[key] = call
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, key)
	}
}

// Unready returns the children of a parent that are not ready, and those that have failed, as
// texts, if their handlers wait for them and still match the parent. It does not say why, because
// that changes without an event for the parent.
func (c *Converger) Unready(parent types.UID) (waiting, broken []string) {
	if c == nil {
		return nil, nil
	}
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range s.owners[parent] {
		of := s.states[hash]
		if hash != of.owner.Hash() || !of.options.WaitReady || s.calls[caller{parent, of.owner.Handler}] == nil {
			continue
		}
		for _, key := range slices.SortedFunc(maps.Keys(of.known), compareKeys) {
			switch of.known[key].readiness {
			case inProgress:
				waiting = append(waiting, key.String())
			case failed:
				broken = append(broken, key.String())
			}
		}
	}
	return waiting, broken
}

// Ensured identifies a handler of children of a resource.
type Ensured struct{ Resource, Handler string }

// Counts returns the numbers of the wanted children, by their handlers. It looks at each child.
func (c *Converger) Counts() map[Ensured]metrics.Children {
	if c == nil {
		return map[Ensured]metrics.Children{}
	}
	s := c.store
	all := map[Ensured]metrics.Children{}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, of := range s.states {
		if hash != of.owner.Hash() {
			continue // it is known by the hash of a former name, too
		}
		ensured := Ensured{of.owner.Parent.Key.Resource, of.owner.Handler}
		n := all[ensured]
		for _, f := range of.known {
			switch f.readiness {
			case current:
				n.Ready++
			case inProgress:
				n.Progressing++
			case failed:
				n.Failed++
			}
		}
		for _, c := range of.contended {
			if c.IsOpen(s.rule, now) {
				n.Contended++
			}
		}
		all[ensured] = n
	}
	return all
}

// Forget drops what is known of the children of a parent that is gone.
func (c *Converger) Forget(parent types.UID) {
	if c == nil {
		return
	}
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range s.owners[parent] {
		delete(s.states, hash)
	}
	delete(s.owners, parent)
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
	// Stopping is closed when no call begins anymore. A call that still waits for a list of children ends then, because it
	// would hold up a shutdown, or another replica.
	Stopping <-chan struct{}
	// IsDeclared reports whether the operator has a handler of children with the id.
	IsDeclared func(handler string) bool
	// Drift decides about what others have changed in a child, before that is restored. Nil
	// restores everything, without a request for the details.
	Drift func(ctx context.Context, r selector.Resource, drift convergence.Drift) (convergence.Resolution, error)
	Log   logr.Logger
}

// Converge makes the children of an owner what its handler wants. It applies whatever it can,
// and returns the errors of the others together.
func (c *Converger) Converge(ctx context.Context, call Call, returned []client.Object) error {
	children, keys, err := c.read(ctx, call.Owner.Parent, returned)
	if err != nil {
		return err
	}
	r := c.begin(call, call.Options)
	defer r.memory.end(keys)
	if err := r.watch(ctx, children); err != nil {
		return err
	}
	if err := r.findUnanswered(ctx, keys); err != nil {
		return err
	}
	if len(children) == 0 && !call.Options.AllowEmpty {
		existing := len(r.unwanted(keys))
		if existing > 0 { // the handler can have returned nothing by mistake
			return &convergence.EmptyError{Children: existing}
		}
	}
	isReady, err := r.applyWaves(ctx, children)
	if err != nil || !isReady {
		return err // without an error, an event of a child triggers the next call
	}
	if err := r.deleteAll(ctx, r.unwanted(keys)); err != nil {
		return err
	}
	r.memory.retain(keys)
	return nil
}

// Release deletes the children that the garbage collector does not delete with the parent.
func (c *Converger) Release(ctx context.Context, call Call) error {
	r := c.begin(call, &convergence.Options{}) // nothing that happens to the children matters anymore
	defer r.memory.end(nil)
	if err := r.watch(ctx, nil); err != nil {
		return err
	}
	if err := r.findUnanswered(ctx, nil); err != nil {
		return err
	}
	return r.deleteAll(ctx, slices.DeleteFunc(r.unwanted(nil), func(f *fact) bool { return call.Owner.Parent.reaches(f.Namespace) }))
}

// read reads what a handler wants, in the order in which it is applied.
func (c *Converger) read(ctx context.Context, parent Parent, returned []client.Object) (children []*child, keys map[Key]bool, err error) {
	keys = map[Key]bool{}
	var problems []error
	for _, obj := range returned {
		ch, err := readChild(ctx, obj, c.config.Scheme, parent, c.config.Resources)
		switch {
		case err != nil:
			problems = append(problems, err)
			continue
		case keys[ch.Key]:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: errors.New("the handler returned it twice")})
		case ch.GroupKind == parent.GVK.GroupKind() && ch.Namespace == parent.Key.Namespace && ch.Name == parent.Key.Name:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: errors.New("it is the parent itself")})
		}
		keys[ch.Key] = true
		children = append(children, ch)
	}
	for _, ch := range children {
		// The cluster serves a kind a moment after its definition is applied.
		isDefinition := func(other *child) bool { return other.defines(ch.GroupKind) }
		if watch.IsNotServed(ch.problem) && slices.ContainsFunc(children, isDefinition) {
			ch.problem = handler.Temporary(fmt.Errorf("the cluster does not serve the kind %s yet: the child is applied after its definition", ch.GroupKind), retryPause)
		}
	}
	slices.SortStableFunc(children, func(a, b *child) int {
		return cmp.Or(cmp.Compare(a.wave, b.wave), cmp.Compare(a.rank(), b.rank()))
	})
	return children, keys, errors.Join(problems...)
}

// run is one call of Converge or Release. It changes the memory of its owner, and no other.
type run struct {
	call      Call
	claim     claim
	memory    *memory
	api       API
	resources *watch.Kinds
	watches   *watch.Watcher
	metrics   *metrics.Metrics
	// manager and formers are the names of the operator: that of the field manager, and former ones.
	manager string
	formers []string
}

// begin begins a call, whose memory must be ended. The options say which events of the children
// matter from now on.
func (c *Converger) begin(call Call, options *convergence.Options) *run {
	of := newClaim(call, c.config.FormerManagers)
	return &run{
		call: call, claim: of, memory: c.store.begin(of, options),
		api: c.api, resources: c.config.Resources, watches: c.config.Watches, metrics: c.config.Metrics,
		manager: c.config.Manager, formers: c.config.FormerManagers,
	}
}

// watch stores the places of the children before anything is created there, and watches them. It
// waits for the watches of former places, so that all existing children are known.
func (r *run) watch(ctx context.Context, wanted []*child) error {
	parent := r.call.Owner.Parent
	places := convergence.Places{}
	for _, ch := range wanted {
		if ch.problem == nil {
			places[ch.place(parent)] = struct{}{}
		}
	}
	all := r.call.Places.With(places)
	if len(all) > len(r.call.Places) {
		if err := r.call.Announce(ctx, all); err != nil {
			return err
		}
	}
	streams, err := r.watches.WatchChildren(ctx, parent.Key.Namespace, r.call.Places)
	if err != nil {
		return err
	}
	if _, err := r.watches.WatchChildren(ctx, parent.Key.Namespace, places); err != nil {
		return err
	}
	for _, s := range streams {
		err := s.Wait(ctx, r.call.Stopping)
		if errors.Is(err, watch.ErrNotAwaited) {
			return &handler.Interruption{Err: handler.ErrCanceled}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findUnanswered looks for the children whose creation was not answered: they may exist before a
// watch shows them. For the wanted ones, the next attempt to create them finds it out.
func (r *run) findUnanswered(ctx context.Context, wanted map[Key]bool) error {
	for key, resource := range r.memory.unansweredCreations() {
		if wanted[key] {
			continue
		}
		u, err := r.api.Get(ctx, resource, key.Namespace, key.Name)
		switch {
		case err == nil:
			r.memory.judge(r.fact(u))
		case isAbsent(err):
			r.memory.answer(key)
		default:
			return &convergence.ChildError{Child: key, Err: fmt.Errorf("its creation was not answered, and it cannot be read: %w", err)}
		}
	}
	return nil
}

// applyWaves applies the children. It ends after a wave in which a child has failed, or for which
// the next one must wait: then it reports that not all are ready.
func (r *run) applyWaves(ctx context.Context, children []*child) (isReady bool, err error) {
	var problems []error
	isReady = true
	for i, ch := range children {
		if i > 0 && ch.wave != children[i-1].wave && (len(problems) > 0 || !isReady) {
			break
		}
		live, err := r.apply(ctx, ch)
		switch {
		case err != nil:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: describeRefusal(err)})
		case live == nil || live.deleting:
			isReady = false
		case !r.call.Options.WaitReady:
		case live.readiness == failed:
			problems = append(problems, &convergence.ChildError{Child: ch.Key, Err: errors.New("it has failed: " + live.detail().message)})
		case live.readiness == inProgress:
			isReady = false
		}
	}
	return isReady, errors.Join(problems...)
}

// unwanted returns the children to delete: what the operator has applied for the owner, and does
// not want anymore.
func (r *run) unwanted(wanted map[Key]bool) []*fact {
	var found []*fact
	all := r.memory.children()
	for _, key := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		f := all[key]
		switch {
		case wanted[key] || !f.isChildOf(r.call.Owner.Parent.UID):
		case f.keep || !r.call.Options.MayPrune(f.GroupKind):
			r.call.Log.V(1).Info("The child is not wanted anymore, but kept.", "child", key.String())
		default:
			found = append(found, f)
		}
	}
	return found
}

// fact reads an object, with its managedFields.
func (r *run) fact(u *unstructured.Unstructured) *fact {
	return readFact(u, r.manager, r.formers...)
}
