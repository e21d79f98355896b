package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// run is one call of Converge or Release.
type run struct {
	*Converger
	Call
	hashes    []string // of the owner; see hashesOf
	state     *state
	decisions decisions
	wanted    []*child
	keys      map[Key]bool
	// unfinished is set if a child waits for something, so that others must wait for it.
	unfinished bool
}

func newRun(c *Converger, call Call, s *state) *run {
	return &run{Converger: c, Call: call, hashes: c.hashesOf(call.Owner), state: s, decisions: decisions{&c.mu, s}}
}

func (r *run) end() { r.Converger.end(r.state, r.keys) }

// read reads what the handler wants.
func (r *run) read(ctx context.Context, wanted []client.Object) error {
	r.keys = map[Key]bool{}
	var problems []error
	for _, obj := range wanted {
		ch, err := readChild(obj, r.Scheme)
		if err == nil {
			err = ch.locate(ctx, r.Owner.Parent, r.Resources)
		}
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
	awaitDefinitions(r.wanted)
	sortChildren(r.wanted)
	return errors.Join(problems...)
}

// awaitDefinitions lets children of kinds that other children define be applied soon: the cluster
// serves such a kind a moment after its definition is applied.
func awaitDefinitions(wanted []*child) {
	for _, ch := range wanted {
		if watch.IsNotServed(ch.problem) && slices.ContainsFunc(wanted, func(other *child) bool { return other.defines(ch.GroupKind) }) {
			ch.problem = handler.Temporary(fmt.Errorf("the cluster does not serve the kind %s yet: the child is applied after its definition", ch.GroupKind), retryPause)
		}
	}
}

// open stores the places of the children before anything is created there, and watches them. It
// waits for the watches of former places, so that all existing children are known.
func (r *run) open(ctx context.Context) error {
	places := convergence.Places{}
	for _, ch := range r.wanted {
		if ch.problem == nil {
			places[ch.place(r.Owner.Parent)] = struct{}{}
		}
	}
	all := r.Places.With(places)
	if len(all) > len(r.Places) {
		if err := r.Announce(ctx, all); err != nil {
			return err
		}
	}
	streams, err := r.Watches.WatchChildren(ctx, r.Owner.Parent.Key.Namespace, r.Places)
	if err != nil {
		return err
	}
	if _, err := r.Watches.WatchChildren(ctx, r.Owner.Parent.Key.Namespace, places); err != nil {
		return err
	}
	for _, s := range streams {
		if err := s.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settleDoubts finds out what has become of creations that were not answered. Of the wanted children, the next
// step finds it out.
func (r *run) settleDoubts(ctx context.Context) error {
	r.mu.Lock()
	doubtful := maps.Clone(r.state.doubtful)
	r.mu.Unlock()
	for key, resource := range doubtful {
		if r.keys[key] {
			continue
		}
		u, err := r.api.Get(ctx, resource, key.Namespace, key.Name)
		switch {
		case err == nil:
			r.note(r.state, r.factOf(u))
		case isAbsent(err):
			r.mu.Lock()
			r.state.settle(key)
			r.mu.Unlock()
		default:
			return &convergence.ChildError{Child: key, Err: fmt.Errorf("its creation was not answered, and it cannot be read: %w", err)}
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
		case r.keys[key] || !f.isChildOf(r.Owner.Parent.UID):
		case f.keep || !r.Options.MayPrune(f.GroupKind):
			r.Log.V(1).Info("The child is not wanted anymore, but kept.", "child", key.String())
		default:
			found = append(found, f)
		}
	}
	return found
}
