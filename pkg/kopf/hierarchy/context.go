package hierarchy

import (
	"context"
	"errors"
)

type ownerKey struct{}

// WithOwner returns a context that carries the object being handled. The engine
// calls it for every handler; call it yourself where there is no handler, such
// as in a test of a function that adopts.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerFrom is the object that the context carries.
func OwnerFrom(ctx context.Context) (Owner, bool) {
	owner, ok := ctx.Value(ownerKey{}).(Owner)
	return owner, ok
}

// resolveOwner is the owner that the options name, else the one of the context.
func (c *config) resolveOwner(ctx context.Context) (Owner, error) {
	current, known := OwnerFrom(ctx)
	if !c.owner.given {
		if !known {
			return Owner{}, errors.New("there is no owner: the context carries no handled object; " +
				"pass the context that the handler got, or name the owner with OwnedBy")
		}
		return current, nil
	}
	owner, err := OwnerOf(c.owner.value)
	if err == nil && owner.Kind == "" && owner.UID != "" && owner.UID == current.UID {
		// A typed view of the handled object, which does not know its own kind.
		owner.APIVersion, owner.Kind = current.APIVersion, current.Kind
	}
	return owner, err
}
