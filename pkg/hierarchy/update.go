package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// edit changes the copy of an object's metadata. It replaces maps and slices and
// never writes into them. It fails if the change makes no sense for this object.
type edit func(*metav1.ObjectMeta) error

// step makes an edit of the options, and of the owner where the options say nothing.
type step func(ctx context.Context, c *config) (edit, error)

// update applies the steps to the object, or to all objects of the list. It edits
// copies first and writes them when all edits have succeeded.
func update[O AdoptOption](ctx context.Context, verb string, objs any, opts []O, steps ...step) error {
	c, err := collect(opts)
	for _, step := range steps {
		if err == nil {
			var made edit
			made, err = step(ctx, c)
			c.edits = append(c.edits, made)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot %s any object: %w", verb, err)
	}
	var updated []*target
	err = each("", objs, func(obj any) error {
		targets, err := c.editObject(obj)
		updated = append(updated, targets...)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot %s %w", verb, err)
	}
	for _, target := range updated {
		target.write(target.after)
	}
	return nil
}

// editObject edits copies of the object's metadata and of that nested in it.
func (c *config) editObject(obj any) ([]*target, error) {
	root, err := newTarget(obj)
	if err != nil {
		return nil, fmt.Errorf("an object: %w", err)
	}
	targets := []*target{root}
	err = root.change(c.edits)
	for _, path := range c.nested {
		var inner *target
		if err == nil {
			inner, err = nestedTarget(obj, path)
		}
		if err == nil && inner != nil {
			err = inner.change(c.nestedEdits)
			targets = append(targets, inner)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	return targets, nil
}

func setName(ctx context.Context, c *config) (edit, error) {
	name, err := valueOrOwners(ctx, c, c.name, func(o Owner) string { return o.Name })
	if err == nil && name == "" {
		err = errors.New("the owner has no name yet: set one with the option Name")
	}
	return func(meta *metav1.ObjectMeta) error {
		switch named := meta.Name != "" || meta.GenerateName != ""; {
		case named && !c.forced:
		case c.strict:
			meta.Name = name
			meta.GenerateName = ""
		default:
			meta.Name = ""
			meta.GenerateName = name + "-"
		}
		return nil
	}, err
}

func setNamespace(ctx context.Context, c *config) (edit, error) {
	namespace, err := valueOrOwners(ctx, c, c.namespace, func(o Owner) string { return o.Namespace })
	return func(meta *metav1.ObjectMeta) error {
		if meta.Namespace == "" || c.forced {
			meta.Namespace = namespace
		}
		return nil
	}, err
}

// addLabels also labels nested objects; all other steps change the outer one only.
func addLabels(ctx context.Context, c *config) (edit, error) {
	labels, err := valueOrOwners(ctx, c, c.labels, func(o Owner) map[string]string { return o.Labels })
	added := func(meta *metav1.ObjectMeta) error {
		first := labels
		second := meta.Labels
		if c.forced {
			first, second = second, first
		}
		merged := make(map[string]string, len(first)+len(second))
		maps.Copy(merged, first)
		maps.Copy(merged, second)
		meta.Labels = merged
		return nil
	}
	c.nestedEdits = append(c.nestedEdits, added)
	return added, err
}

// addReference appends. SetControllerReference of controller-runtime does not fit: it
// refuses children in other namespaces, and finds references by name, not by uid.
func addReference(ctx context.Context, c *config) (edit, error) {
	owner, err := c.resolveOwner(ctx)
	if err != nil {
		return nil, err
	}
	ref, err := c.ownerReference(owner)
	return func(meta *metav1.ObjectMeta) error {
		if !slices.ContainsFunc(meta.OwnerReferences, refersTo(owner)) {
			if other := metav1.GetControllerOf(meta); other != nil && *ref.Controller {
				return fmt.Errorf("it is controlled by %s (uid %s) already, and an object has at most one controller: "+
					"use NotController, or remove that owner first", describe(other.Kind, "", other.Name), other.UID)
			}
			meta.OwnerReferences = append(slices.Clone(meta.OwnerReferences), ref)
		}
		warnOfNamespace(ctx, owner, meta)
		return nil
	}, err
}

func removeReference(ctx context.Context, c *config) (edit, error) {
	owner, err := c.resolveOwner(ctx)
	if err == nil && owner.UID == "" {
		err = errors.New("the owner has no uid, so its reference cannot be identified")
	}
	return func(meta *metav1.ObjectMeta) error {
		meta.OwnerReferences = slices.DeleteFunc(slices.Clone(meta.OwnerReferences), refersTo(owner))
		return nil
	}, err
}

func refersTo(owner Owner) func(metav1.OwnerReference) bool {
	return func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID }
}

// valueOrOwners returns the value of the option, or that of the owner without it.
func valueOrOwners[T any](ctx context.Context, c *config, option *T, of func(Owner) T) (T, error) {
	if option != nil {
		return *option, nil
	}
	owner, err := c.resolveOwner(ctx)
	return of(owner), err
}

// warnOfNamespace logs a child that Kubernetes will delete, see Adopt.
func warnOfNamespace(ctx context.Context, owner Owner, child *metav1.ObjectMeta) {
	if owner.Namespace != "" && child.Namespace != "" && child.Namespace != owner.Namespace {
		logr.FromContextOrDiscard(ctx).Info("An owned object is not in the namespace of its owner: Kubernetes will delete it",
			"namespace", child.Namespace, "name", child.Name+child.GenerateName, "owner", owner.String())
	}
}
