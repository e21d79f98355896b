package hierarchy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// Handled are the arguments of a handler that can change its object, such as kopf.Change.
type Handled interface {
	Body() *object.Body
	Patch() *patch.Patch
}

// AppendOwner makes the handled object a child of another one: it adds an owner reference
// to the patch, unless the object has a reference to that owner already. Kubernetes deletes
// the object when the last of its owners is gone. The owner can be whatever OwnedBy takes;
// it must exist in the cluster, in the namespace of the object or without a namespace. By
// default, the owner is the controller of the object, and is not deleted before it; see
// NotController and NotBlocking.
//
//	func claimFn(ctx context.Context, c *kopf.Change) error {
//		parent := &appsv1.Deployment{}
//		if err := c.Client().Get(ctx, keyOf(c), parent); err != nil {
//			return err
//		}
//		return hierarchy.AppendOwner(ctx, c, parent)
//	}
//
// It returns an error if the owner is unknown, has no uid, or is the object itself, and if
// the object has another controller already. The context must be that of the handler.
func AppendOwner(ctx context.Context, handled Handled, owner any, options ...OwnershipOption) error {
	known, err := ResolveOwner(ctx, owner)
	if err != nil {
		return fmt.Errorf("cannot add an owner to the object: %w", err)
	}
	if known.UID != "" && known.UID == handled.Body().UID() {
		return fmt.Errorf("cannot add an owner to the object: %s cannot own itself", known)
	}
	references := []ReferenceOption{OwnedBy(known)}
	for _, option := range options {
		references = append(references, option)
	}
	// The first call finds mistakes while the handler runs. The second one sees the object
	// as it is when the patch is written, possibly several times.
	now := &unstructured.Unstructured{Object: handled.Body().View().Map()}
	if err := AppendOwnerReference(ctx, now, references...); err != nil {
		return err
	}
	handled.Patch().Apply(func(latest *unstructured.Unstructured) error {
		return AppendOwnerReference(context.Background(), latest, references...)
	})
	return nil
}
