package garbage

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Collector deletes objects through a client, so that webhooks see it.
type Collector struct {
	Client client.Client
	// Objects are all objects. They are not modified.
	Objects []*unstructured.Unstructured
	// changed is set when something was deleted or patched.
	changed bool
}

// Collect makes one round, and reports whether it has changed something.
func (c *Collector) Collect(ctx context.Context) (bool, error) {
	for _, object := range c.Objects {
		if object.GetDeletionTimestamp() != nil {
			if err := c.finish(ctx, object); err != nil {
				return false, err
			}
			continue
		}
		if err := c.judge(ctx, object); err != nil {
			return false, err
		}
	}
	return c.changed, nil
}

// judge deletes an object that has no owner anymore, except for those that wait for the
// deletion of their dependents. If other owners remain, it removes the references to the rest.
func (c *Collector) judge(ctx context.Context, object *unstructured.Unstructured) error {
	references := object.GetOwnerReferences()
	var kept []metav1.OwnerReference
	isAwaited := false
	for _, reference := range references {
		owner, isKnown := c.ownerOf(object, reference)
		switch {
		case !isKnown:
			return nil
		case owner == nil:
		case isForeground(owner):
			isAwaited = true
		default:
			kept = append(kept, reference)
		}
	}
	switch {
	case len(kept) == len(references):
		return nil
	case len(kept) > 0:
		return c.patch(ctx, object, map[string]any{"ownerReferences": kept})
	case isAwaited && len(c.dependentsOf(object.GetUID())) > 0:
		return c.delete(ctx, object, metav1.DeletePropagationForeground)
	default:
		return c.delete(ctx, object, metav1.DeletePropagationBackground)
	}
}

// ownerOf returns the owner of an object, or nil if it is gone. An owner whose resource is not
// known can exist: its dependents are left alone. So are cluster-wide objects that name an
// owner in a namespace, because they cannot say in which one.
func (c *Collector) ownerOf(object *unstructured.Unstructured, reference metav1.OwnerReference) (owner *unstructured.Unstructured, isKnown bool) {
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
	mapping, err := c.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, false
	}
	isNamespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if isNamespaced && object.GetNamespace() == "" {
		return nil, false
	}
	found := slices.IndexFunc(c.Objects, func(one *unstructured.Unstructured) bool {
		return one.GetUID() == reference.UID && one.GetName() == reference.Name &&
			one.GroupVersionKind().GroupKind() == kind.GroupKind() && (!isNamespaced || one.GetNamespace() == object.GetNamespace())
	})
	if found < 0 {
		return nil, true
	}
	return c.Objects[found], true
}

// finish does what finalizers of the garbage collector ask for: it makes orphans of the
// dependents, or releases the owner when those that block its deletion are gone.
func (c *Collector) finish(ctx context.Context, owner *unstructured.Unstructured) error {
	dependents := c.dependentsOf(owner.GetUID())
	if hasFinalizer(owner, metav1.FinalizerOrphanDependents) {
		for _, one := range dependents {
			kept := slices.DeleteFunc(one.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
			if err := c.patch(ctx, one, map[string]any{"ownerReferences": kept}); err != nil {
				return err
			}
		}
		return c.release(ctx, owner, metav1.FinalizerOrphanDependents)
	}
	blocksOwner := func(one *unstructured.Unstructured) bool {
		return slices.ContainsFunc(one.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.UID == owner.GetUID() && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
		})
	}
	if !isForeground(owner) || slices.ContainsFunc(dependents, blocksOwner) {
		return nil
	}
	return c.release(ctx, owner, metav1.FinalizerDeleteDependents)
}

func isForeground(owner *unstructured.Unstructured) bool {
	return owner.GetDeletionTimestamp() != nil && hasFinalizer(owner, metav1.FinalizerDeleteDependents)
}

func hasFinalizer(object *unstructured.Unstructured, name string) bool {
	return slices.Contains(object.GetFinalizers(), name)
}

func (c *Collector) dependentsOf(owner types.UID) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, one := range c.Objects {
		if slices.ContainsFunc(one.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }) {
			found = append(found, one)
		}
	}
	return found
}

// release removes a finalizer.
func (c *Collector) release(ctx context.Context, owner *unstructured.Unstructured, finalizer string) error {
	kept := slices.DeleteFunc(owner.GetFinalizers(), func(name string) bool { return name == finalizer })
	return c.patch(ctx, owner, map[string]any{"finalizers": kept})
}

// patch changes the metadata of the version that was judged. If it has changed meanwhile, the
// next round decides.
func (c *Collector) patch(ctx context.Context, object *unstructured.Unstructured, metadata map[string]any) error {
	metadata["uid"] = object.GetUID()
	metadata["resourceVersion"] = object.GetResourceVersion()
	return c.done(c.Client.Patch(ctx, object.DeepCopy(), mergePatch{metadata}))
}

// delete deletes the version that was judged.
func (c *Collector) delete(ctx context.Context, object *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	return c.done(c.Client.Delete(ctx, object.DeepCopy(), client.PropagationPolicy(policy),
		client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}))
}
