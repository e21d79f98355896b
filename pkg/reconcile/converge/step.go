package converge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
)

// action is what must be done with a wanted child.
type action uint8

const (
	nothing action = iota
	create
	apply
	restore // what others have changed
	accept  // what others have changed; only the record of that is applied
	wait    // until it is deleted
	examine // it has another owner or controller: read it, and adopt or refuse it
)

// decide returns what must be done with a child. Live is its latest version, or nil if it does
// not exist; known is the version that was judged last, or nil after a restart.
func decide(a applied, owner string, parent types.UID, live, known *fact) action {
	switch {
	case live == nil:
		return create
	case live.deleting:
		return wait
	case live.owner != owner || live.isControlledByOther(parent):
		return examine
	case live.marks.Wanted == "" && live.isApplied():
		return restore // others have changed the annotation
	case live.marks.Wanted != a.hash:
		return apply
	case known != nil && known.uid == live.uid && known.digest == live.digest:
		return nothing
	case known == nil && live.isApplied() && len(live.detail().lost(a.content)) == 0:
		return nothing
	default:
		return restore
	}
}

// maxTries limits how often a step is repeated because others delete or replace the child.
const maxTries = 4

// retryPause is the pause before the next attempt to create a child that has to wait for
// something that is not watched: until the object that has its name is deleted, or until its kind
// is served.
const retryPause = 5 * time.Second

var errReplaced = errors.New("other clients change, delete, or replace it so often that it cannot be applied")

// step makes one child what it should be. It returns the resulting version, or nil if the child
// must be waited for.
func (r *run) step(ctx context.Context, ch *child) (*fact, error) {
	if ch.problem != nil {
		return nil, ch.problem
	}
	live, known := r.view(r.state, ch.Key)
	for range maxTries {
		var result *fact
		var err error
		live, err = r.inherit(ctx, ch, live, known != nil)
		if err != nil {
			return nil, err
		}
		a := ch.mark(r.Owner, live != nil && live.keep, live.acceptedBy(r.Owner))
		switch why := decide(a, cmp.Or(ch.label, r.hashes[0]), r.Owner.Parent.UID, live, known); why {
		case nothing, wait:
			r.note(r.state, live)
			return live, nil
		case create:
			result, err = r.create(ctx, a)
		case apply, restore:
			if why == restore || r.decisions.areFailing(ch.Key) {
				result, err = r.restore(ctx, a, live, why)
			} else {
				result, err = r.apply(ctx, a, live, why)
			}
		case examine: // below
		}
		if err != nil || result != nil {
			return result, err
		}
		next, done, err := r.readLive(ctx, ch, known != nil)
		if err != nil || done {
			return next, err
		}
		live = next
		known = nil
	}
	return nil, errReplaced
}

// noVersion is a resource version that no object has. An apply with it creates an object, or
// fails with a conflict if it exists.
const noVersion = "1"

// create creates a child. It returns nil if an object of the name exists.
func (r *run) create(ctx context.Context, a applied) (*fact, error) {
	if err := r.askAboutDeletion(ctx, a.child); err != nil {
		return nil, err
	}
	u, err := r.api.Apply(ctx, a.resource, withMetadata(a.content, "resourceVersion", noVersion))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return nil, nil
	case err != nil:
		if !isRefused(err) {
			r.doubt(r.state, a.Key, a.resource)
		}
		return nil, err
	}
	message := "The child is created."
	if r.decisions.isLost(a.Key) {
		message = "The child was deleted by another client, and is created again."
		if r.noteRestoration(r.state, a.Key) {
			r.reportFight(a.Key, "it was deleted")
		}
	}
	r.Log.Info(message, "child", a.Key.String())
	r.count(metrics.Created)
	return r.answered(u), nil
}

// apply changes a child. It returns nil if that was deleted or replaced, or has changed since a
// handler has decided about it.
func (r *run) apply(ctx context.Context, a applied, live *fact, why action) (*fact, error) {
	content := withMetadata(a.content, "uid", string(live.uid))
	if a.version != "" {
		content = withMetadata(content, "resourceVersion", a.version)
	}
	u, err := r.api.Apply(ctx, a.resource, content)
	switch {
	case err == nil:
		r.reportApplied(a, u, live, why)
		return r.answered(u), nil
	case isReplaced(err):
		return nil, nil
	case !isRefusedByValidation(err):
		return nil, err
	}
	refusal := err
	result, err := r.unblock(ctx, a, live, why, refusal)
	if err != nil && isRefusedByValidation(err) && r.Options.MayRecreate(a.GroupKind) {
		return r.recreate(ctx, a, live, refusal)
	}
	return result, err
}

// reportApplied reports a change of a child, if there was one.
func (r *run) reportApplied(a applied, u *unstructured.Unstructured, live *fact, why action) {
	switch {
	case u.GetResourceVersion() == live.version:
	case why == accept: // which is reported in detail
	case why == restore:
		r.Log.Info("The child was changed by another client, and is restored.", "child", a.Key.String(), "fields", nameLost(live, a.content))
		r.count(metrics.Restored)
	default:
		r.Log.Info("The child is changed.", "child", a.Key.String())
		r.count(metrics.Changed)
	}
}

// mostNamed limits the fields in a line of the log.
const mostNamed = 10

// nameLost returns the wanted fields that the operator does not own anymore, as far as the watch has shown them.
func nameLost(live *fact, content map[string]any) (names []string) {
	d := live.detail()
	if d.fields == nil {
		return nil
	}
	for _, p := range d.lost(content) {
		if len(names) == mostNamed {
			return append(names, "and others")
		}
		names = append(names, p.String())
	}
	return names
}

// answered remembers the answer to a write.
func (r *run) answered(u *unstructured.Unstructured) *fact {
	f := r.factOf(u)
	r.note(r.state, f)
	return f
}

// recreate deletes a child if the API server refuses to change it, but would create it: then what
// is wanted is valid, and only the change to it is not. The event of the deletion triggers the call
// that creates the child again. It returns nil if the child has changed meanwhile: another look at
// it decides.
func (r *run) recreate(ctx context.Context, a applied, live *fact, refusal error) (*fact, error) {
	replacement := a.content
	if a.GroupKind == serviceKind {
		u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		case u.GetUID() != live.uid:
			return nil, nil
		}
		replacement = withoutAllocations(a.content, u.Object)
	}
	if err := r.api.TryCreate(ctx, a.resource, replacement); err != nil && !isCountedByQuota(err) {
		return nil, fmt.Errorf("the API server refuses the change (%w), and its replacement is refused, too, so it was not deleted to be created again: %w", refusal, err)
	}
	r.note(r.state, live)
	switch err := r.deleteVersion(ctx, a.resource, live); {
	case isReplaced(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.Log.Info("The child is deleted to be created again, because the API server refuses to change it.", "child", a.Key.String(), "refusal", refusal.Error())
	r.count(metrics.Deleted)
	r.unfinished = true
	return live, nil
}

// readLive reads a child directly, or nil if it does not exist. If it must be adopted, that is
// done. Again is set if it was a child before.
func (r *run) readLive(ctx context.Context, ch *child, again bool) (live *fact, adopted bool, err error) {
	u, err := r.api.Get(ctx, ch.resource, ch.Namespace, ch.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	live = r.factOf(u)
	switch {
	case slices.Contains(r.hashes, live.owner) && !live.isControlledByOther(r.Owner.Parent.UID):
		return live, false, nil
	case live.deleting:
		return nil, false, handler.Temporary(errors.New("an object of this name is being deleted; the child is created after that"), retryPause)
	}
	if err := r.ownership(ch, u).check(live); err != nil {
		return nil, false, err
	}
	if live.former {
		live, err = takeOver(ctx, r, ch, live, false)
		if live == nil || err != nil {
			return nil, false, err
		}
	}
	a := ch.mark(r.Owner, live.keep, live.acceptedBy(r.Owner))
	if live.isApplied() && r.Drift != nil {
		a, _, _, err = r.resolve(ctx, a, u, restore)
		if err != nil {
			return nil, false, err
		}
	}
	drift := driftOf(u, a, r.Owner, r.Manager)
	again = again || r.decisions.isLost(ch.Key)
	live, err = r.apply(ctx, a, live, apply)
	if live != nil && again && r.noteRestoration(r.state, ch.Key) {
		r.reportFight(ch.Key, convergence.Fields(drift))
	}
	return live, live != nil, err
}

// withMetadata returns a copy of an object with one more field in its metadata.
func withMetadata(content map[string]any, field, value string) map[string]any {
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	_ = unstructured.SetNestedField(u.Object, value, "metadata", field)
	return u.Object
}
