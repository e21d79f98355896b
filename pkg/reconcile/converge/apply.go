package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// maxTries limits how often one look at a child is repeated because others change, delete, or
// replace it meanwhile.
const maxTries = 4

var (
	// errChanged is why a request did nothing: the child is not what the decision was about. Another
	// look at it decides.
	errChanged   = errors.New("the child has changed meanwhile")
	errContended = errors.New("other clients change, delete, or replace it so often that it cannot be applied")
)

// apply makes one child what it should be. It returns the resulting version, or nil if the child
// was deleted to be created again.
func (r *run) apply(ctx context.Context, ch *child) (*fact, error) {
	if ch.problem != nil {
		return nil, ch.problem
	}
	v := r.memory.view(ch.Key)
	for range maxTries {
		v.unresolved = r.memory.unresolved(ch.Key)
		result, err := r.try(ctx, ch, v)
		if !errors.Is(err, errChanged) {
			return result, err
		}
		v, err = r.read(ctx, ch, v)
		if err != nil {
			return nil, err
		}
	}
	return nil, errContended
}

// try decides what must be done with a child, and does it.
func (r *run) try(ctx context.Context, ch *child, v view) (*fact, error) {
	var err error
	d := r.claim.decide(ch, v)
	if d.action == examine {
		v, err = r.read(ctx, ch, v)
		if err != nil {
			return nil, err
		}
		d = r.claim.decide(ch, v)
	}
	if d.action == takeOver {
		v, err = r.takeOver(ctx, ch, v)
		if err != nil {
			return nil, err
		}
		d = r.claim.decide(ch, v)
	}
	switch d.action {
	case create:
		return r.create(ctx, d.applied, v)
	case change, restore:
		return r.change(ctx, d, v)
	case adopt:
		return r.adopt(ctx, d.applied, v)
	case refuse:
		return nil, d.refusal
	case leave, wait:
		r.memory.judge(v.live)
		return v.live, nil
	default:
		return nil, errChanged
	}
}

// read returns the view of a child as the API server has it.
func (r *run) read(ctx context.Context, ch *child, v view) (view, error) {
	u, err := r.api.Get(ctx, ch.resource, ch.Namespace, ch.Name)
	switch {
	case apierrors.IsNotFound(err):
		v.live = nil
		v.object = nil
	case err != nil:
		return v, err
	default:
		v.live = r.fact(u)
		v.object = u
	}
	return v, nil
}

// readSame reads a child, which must be the object with the uid.
func (r *run) readSame(ctx context.Context, ch *child, uid types.UID) (*unstructured.Unstructured, error) {
	u, err := r.api.Get(ctx, ch.resource, ch.Namespace, ch.Name)
	if apierrors.IsNotFound(err) || err == nil && u.GetUID() != uid {
		return nil, errChanged
	}
	return u, err
}

// noVersion is a resource version that no object has. An apply with it creates an object, or
// fails with a conflict if it exists.
const noVersion = "1"

// create creates a child. If another client has deleted it, the handlers of drift are asked first.
func (r *run) create(ctx context.Context, a applied, v view) (*fact, error) {
	if r.call.Drift != nil && v.mustAsk {
		_, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
		switch {
		case err == nil: // it has only lost its label; that is found out when it cannot be created
		case !apierrors.IsNotFound(err):
			return nil, err
		default:
			if _, err := r.call.Drift(ctx, a.resource, convergence.Drift{Child: a.Key}); err != nil {
				return nil, err
			}
			r.memory.decideLoss(a.Key)
		}
	}
	u, err := r.api.Apply(ctx, a.resource, withMetadata(a.content, "resourceVersion", noVersion))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return nil, errChanged
	case err != nil:
		if !isRefused(err) {
			r.memory.doubt(a.Key, a.resource)
		}
		return nil, err
	}
	message := "The child is created."
	if v.isLost {
		message = "The child was deleted by another client, and is created again."
		if r.memory.countRestoration(a.Key) {
			r.reportContention(a.Key, "it was deleted")
		}
	}
	r.call.Log.Info(message, "child", a.Key.String())
	r.count(metrics.Created)
	return r.remember(u), nil
}

// change applies a child that exists. If others have changed it, the handlers of drift are asked
// first. If something else is wanted as well, they are asked only about the fields about which
// they have failed to decide.
func (r *run) change(ctx context.Context, d decision, v view) (*fact, error) {
	a := d.applied
	why := d.action
	var drift []convergence.DriftedField
	if r.call.Drift != nil && (why == restore || len(v.undecided) > 0) {
		u, err := r.readSame(ctx, a.child, v.live.uid)
		if err != nil {
			return nil, err
		}
		var only accepted
		if why == change {
			only = v.undecided
		}
		resolved, err := r.resolve(ctx, a, u, only)
		if err != nil {
			return nil, err
		}
		a = resolved.applied
		drift = resolved.drift
		if why == restore && resolved.isComplete {
			why = accept
		}
	}
	if why == restore && r.memory.countRestoration(a.Key) {
		if r.call.Drift == nil {
			u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
			if err == nil { // otherwise, the report names no fields
				drift = driftOf(u, a, r.manager)
			}
		}
		r.reportContention(a.Key, convergence.Fields(drift))
	}
	return r.write(ctx, a, v, why)
}

// adopt takes over an object that was read. Others can have changed it, too.
func (r *run) adopt(ctx context.Context, a applied, v view) (*fact, error) {
	if v.live.isApplied() && r.call.Drift != nil {
		resolved, err := r.resolve(ctx, a, v.object, nil)
		if err != nil {
			return nil, err
		}
		a = resolved.applied
	}
	result, err := r.write(ctx, a, v, change)
	if err == nil && (v.known != nil || v.isLost) && r.memory.countRestoration(a.Key) {
		r.reportContention(a.Key, convergence.Fields(driftOf(v.object, a, r.manager)))
	}
	return result, err
}

// write applies a child that exists, unless it has changed since a handler has decided about it. If
// the API server refuses that, what blocks it is removed, or the child is created again. It returns
// nil if the child was deleted for that.
func (r *run) write(ctx context.Context, a applied, v view, why action) (*fact, error) {
	content := withMetadata(a.content, "uid", string(v.live.uid))
	if a.version != "" {
		content = withMetadata(content, "resourceVersion", a.version)
	}
	u, err := r.api.Apply(ctx, a.resource, content)
	switch {
	case err == nil:
		r.reportApplied(a, u, v.live, why)
		return r.remember(u), nil
	case isReplaced(err):
		return nil, errChanged
	case !isRefusedByValidation(err):
		return nil, err
	}
	refusal := err
	result, err := r.unblock(ctx, a, v, why, refusal)
	if err != nil && isRefusedByValidation(err) && r.call.Options.MayRecreate(a.GroupKind) {
		return nil, r.recreate(ctx, a, v.live, refusal)
	}
	return result, err
}

// recreate deletes a child if the API server refuses to change it, but would create it: then what
// is wanted is valid, and only the change to it is not. The event of the deletion triggers the call
// that creates the child again.
func (r *run) recreate(ctx context.Context, a applied, live *fact, refusal error) error {
	replacement := a.content
	if a.GroupKind == serviceKind {
		u, err := r.readSame(ctx, a.child, live.uid)
		if err != nil {
			return err
		}
		replacement = withoutAllocations(a.content, u.Object)
	}
	err := r.api.TryCreate(ctx, a.resource, replacement)
	if err != nil && !isCountedByQuota(err) {
		return fmt.Errorf("the API server refuses the change (%w), and its replacement is refused, too, so it was not deleted to be created again: %w", refusal, err)
	}
	r.memory.judge(live)
	err = r.deleteVersion(ctx, a.resource, live)
	switch {
	case isReplaced(err):
		return errChanged
	case err != nil:
		return err
	}
	r.call.Log.Info("The child is deleted to be created again, because the API server refuses to change it.", "child", a.Key.String(), "refusal", refusal.Error())
	r.count(metrics.Deleted)
	return nil
}

// deleteAll deletes children, and returns the errors together.
func (r *run) deleteAll(ctx context.Context, children []*fact) error {
	var problems []error
	for _, f := range children {
		if err := r.delete(ctx, f); err != nil {
			problems = append(problems, &convergence.ChildError{Child: f.Key, Err: err})
		}
	}
	return errors.Join(problems...)
}

// delete deletes one child, unless it has changed hands meanwhile.
func (r *run) delete(ctx context.Context, f *fact) error {
	resource, err := r.resources.FindKind(ctx, f.GroupKind)
	if err != nil {
		return err
	}
	for range maxTries {
		err := r.deleteVersion(ctx, resource, f)
		switch {
		case err == nil:
			r.call.Log.Info("The child is not wanted anymore, and deleted.", "child", f.Key.String())
			r.count(metrics.Deleted)
			return nil
		case isAbsent(err):
			return nil
		case apierrors.IsNotFound(err): // the version is not served anymore, or the kind
			resource, err = r.resources.FindKindAgain(ctx, f.GroupKind)
			if err != nil {
				return err
			}
			continue
		case !apierrors.IsConflict(err):
			return err
		}
		u, err := r.api.Get(ctx, resource, f.Namespace, f.Name)
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		now := r.fact(u)
		if now.uid != f.uid || !slices.Contains(r.claim.hashes, now.owner) || now.deleting || now.keep || now.isControlledByOther(r.call.Owner.Parent.UID) {
			return nil
		}
		f = now
	}
	return errContended
}

// deleteVersion deletes exactly this version of a child. The event of the deletion then does not
// count as a loss. If the server refuses it, a later deletion is by another client.
func (r *run) deleteVersion(ctx context.Context, resource selector.Resource, f *fact) error {
	r.memory.expectDeletion(f.uid)
	err := r.api.Delete(ctx, resource, f)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		r.memory.forgetDeletion(f.uid)
	}
	return err
}

// remember keeps the answer to a write.
func (r *run) remember(u *unstructured.Unstructured) *fact {
	f := r.fact(u)
	r.memory.judge(f)
	return f
}

// count counts a write that has changed a child.
func (r *run) count(operation metrics.ChildOperation) {
	r.metrics.ChildWrite(r.call.Owner.Parent.Key.Resource, r.call.Owner.Handler, operation)
}

// reportApplied reports a change of a child, if there was one.
func (r *run) reportApplied(a applied, u *unstructured.Unstructured, live *fact, why action) {
	switch {
	case u.GetResourceVersion() == live.version:
	case why == accept: // which is reported in detail
	case why == restore:
		r.call.Log.Info("The child was changed by another client, and is restored.", "child", a.Key.String(), "fields", nameLost(live, a.content))
		r.count(metrics.Restored)
	default:
		r.call.Log.Info("The child is changed.", "child", a.Key.String())
		r.count(metrics.Changed)
	}
}

// reportContention reports the fields that another client keeps changing, or that it keeps deleting
// the child.
func (r *run) reportContention(key Key, what string) {
	r.call.Log.Error(fmt.Errorf("the child %s: %s", key, what),
		"Another client keeps changing a child, so the operator restores it less often. Let only one of them manage the child.", "manager", r.manager)
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

// withMetadata returns a copy of an object with one more field in its metadata.
func withMetadata(content map[string]any, field, value string) map[string]any {
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	_ = unstructured.SetNestedField(u.Object, value, "metadata", field)
	return u.Object
}
