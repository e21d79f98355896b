package hierarchy

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
)

type ownerKey struct{}

// WithOwner returns a context that carries the object being handled. The engine
// calls it for every handler; call it yourself where there is no handler, such
// as in a test of a function that adopts.
func WithOwner(ctx context.Context, owner Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// WithOwnerOf is WithOwner for an object that is looked at only when somebody asks
// for the owner: most handlers adopt nothing, and decoding their object costs more
// than all the rest of a call.
func WithOwnerOf(ctx context.Context, body func() *object.Body) context.Context {
	return context.WithValue(ctx, ownerKey{}, body)
}

// OwnerFrom is the object that the context carries.
func OwnerFrom(ctx context.Context) (Owner, bool) {
	switch carried := ctx.Value(ownerKey{}).(type) {
	case Owner:
		return carried, true
	case func() *object.Body:
		return OwnerOfBody(carried()), true
	default:
		return Owner{}, false
	}
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
