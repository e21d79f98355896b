package hierarchy

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
)

// step turns the options, and the owner where they say nothing, into edits.
type step func(ctx context.Context, c *config) error

func naming(ctx context.Context, c *config) error {
	name, err := resolve(ctx, c, c.name, func(o Owner) string { return o.Name })
	if err == nil && name == "" {
		err = errors.New("the owner has no name yet: give one with the option Name")
	}
	c.edits = append(c.edits, setName(name, c.forced, c.strict))
	return err
}

func placing(ctx context.Context, c *config) error {
	namespace, err := resolve(ctx, c, c.namespace, func(o Owner) string { return o.Namespace })
	c.edits = append(c.edits, setNamespace(namespace, c.forced))
	return err
}

func labelling(ctx context.Context, c *config) error {
	labels, err := resolve(ctx, c, c.labels, func(o Owner) map[string]string { return o.Labels })
	added := addLabels(labels, c.forced)
	c.edits = append(c.edits, added)
	c.nestedEdits = append(c.nestedEdits, added) // everything else belongs to the outer object alone
	return err
}

func owning(ctx context.Context, c *config) error {
	owner, err := c.resolveOwner(ctx)
	if err != nil {
		return err
	}
	ref, err := c.ownerReference(owner)
	c.edits = append(c.edits, addReference(ref), warnOfNamespace(ctx, owner))
	return err
}

func disowning(ctx context.Context, c *config) error {
	owner, err := c.resolveOwner(ctx)
	if err == nil && owner.UID == "" {
		err = errors.New("the owner has no uid, so it cannot be told which reference is meant")
	}
	c.edits = append(c.edits, removeReference(owner.UID))
	return err
}

// resolve is the value of the option; without the option, that of the owner.
func resolve[T any](ctx context.Context, c *config, option maybe[T], of func(Owner) T) (T, error) {
	if option.given {
		return option.value, nil
	}
	owner, err := c.resolveOwner(ctx)
	return of(owner), err
}

// warnOfNamespace changes nothing: it tells of a child that Kubernetes is going
// to delete, see Adopt.
func warnOfNamespace(ctx context.Context, owner Owner) edit {
	return func(m *metadata) error {
		if owner.Namespace != "" && m.Namespace != "" && m.Namespace != owner.Namespace {
			logr.FromContextOrDiscard(ctx).Info("An owned object is in another namespace than its owner: Kubernetes will delete it",
				"namespace", m.Namespace, "name", m.Name+m.GenerateName, "owner", owner.String())
		}
		return nil
	}
}
