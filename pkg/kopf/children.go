package kopf

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// The options of the functions for child objects, for functions of your own that take or
// return them.
type (
	// AdoptOption is an option of Adopt, which takes the options of all its parts.
	AdoptOption = hierarchy.AdoptOption
	// LabelOption is an option of Label.
	LabelOption = hierarchy.LabelOption
	// NamingOption is an option of HarmonizeNaming.
	NamingOption = hierarchy.NamingOption
	// NamespaceOption is an option of AdjustNamespace.
	NamespaceOption = hierarchy.NamespaceOption
	// ReferenceOption is an option of AppendOwnerReference.
	ReferenceOption = hierarchy.ReferenceOption
	// RemovalOption is an option of RemoveOwnerReference.
	RemovalOption = hierarchy.RemovalOption
	// OwnershipOption is an option of AppendOwnerReference, BuildOwnerReference, and
	// AppendOwner.
	OwnershipOption = hierarchy.OwnershipOption
	// ForcedOption is an option of all functions that can overwrite something.
	ForcedOption = hierarchy.ForcedOption
	// OwnerOption is an option of all functions that need an owner.
	OwnerOption = hierarchy.OwnerOption
)

// Adopt makes objects the children of the handled one. Call it before you create them. It
// sets the owner reference, the name, the namespace, and the labels, unless the object has
// them already. It takes one object or a list; each can be typed, unstructured, or a map.
// Its options are WithLabels, WithName, WithNamespace, OwnedBy, Forced, Strict, Nested,
// NotController, and NotBlocking.
//
// The API server completes the name of the handled object to a unique name, so each call
// leads to another child. A handler can be called again, for example after a crash. To get
// the same name each time, use Strict, and ignore that the child exists already:
// client.IgnoreAlreadyExists.
//
// If the children are of the same resource as the handled object, they match the same
// handlers, and get children in turn. Give them other labels with WithLabels. With Strict,
// they have the name of the handled object, so give them another one with WithName.
//
// Specification: Hierarchies, "Adopting".
func Adopt(ctx context.Context, objs any, options ...AdoptOption) error {
	return hierarchy.Adopt(ctx, objs, options...)
}

// Label adds the labels of the handled object to objects, or those of the option
// WithLabels.
func Label(ctx context.Context, objs any, options ...LabelOption) error {
	return hierarchy.Label(ctx, objs, options...)
}

// HarmonizeNaming names objects after the handled one, or by the option WithName. The API
// server completes the name to a unique one, unless Strict is given.
func HarmonizeNaming(ctx context.Context, objs any, options ...NamingOption) error {
	return hierarchy.HarmonizeNaming(ctx, objs, options...)
}

// AdjustNamespace puts objects into the namespace of the handled one, or into that of the
// option WithNamespace.
func AdjustNamespace(ctx context.Context, objs any, options ...NamespaceOption) error {
	return hierarchy.AdjustNamespace(ctx, objs, options...)
}

// AppendOwnerReference makes the handled object, or that of the option OwnedBy, an owner of
// other objects. Kubernetes deletes them together with their owner. To make the handled
// object the child of another one, use AppendOwner.
func AppendOwnerReference(ctx context.Context, objs any, options ...ReferenceOption) error {
	return hierarchy.AppendOwnerReference(ctx, objs, options...)
}

// RemoveOwnerReference removes the references that AppendOwnerReference adds.
func RemoveOwnerReference(ctx context.Context, objs any, options ...RemovalOption) error {
	return hierarchy.RemoveOwnerReference(ctx, objs, options...)
}

// BuildOwnerReference returns the reference by which children refer to their owner. A typed
// owner must have its apiVersion and kind set.
func BuildOwnerReference(owner any, options ...OwnershipOption) (metav1.OwnerReference, error) {
	return hierarchy.OwnerReference(owner, options...)
}

// BuildObjectReference returns the reference by which events and fields of other objects
// refer to an object. A typed object must have its apiVersion and kind set.
func BuildObjectReference(obj any) (corev1.ObjectReference, error) {
	return hierarchy.ObjectReference(obj)
}

// Writable are the arguments of handlers that can change their object: Change, WatchEvent,
// Task, Tick, Admission, and their typed siblings.
type Writable interface {
	Arguments
	Patch() *Patch
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
//		return kopf.AppendOwner(ctx, c, parent)
//	}
//
// It returns an error if the owner is unknown, has no uid, or is the object itself, and if
// the object has another controller already. The context must be that of the handler.
func AppendOwner(ctx context.Context, handled Writable, owner any, options ...OwnershipOption) error {
	known, err := hierarchy.ResolveOwner(ctx, owner)
	if err != nil {
		return fmt.Errorf("cannot add an owner to the object: %w", err)
	}
	if known.UID != "" && known.UID == handled.UID() {
		return fmt.Errorf("cannot add an owner to the object: %s cannot own itself", known)
	}
	references := []ReferenceOption{OwnedBy(known)}
	for _, option := range options {
		references = append(references, option)
	}
	// The first call finds mistakes while the handler runs. The second one sees the object
	// as it is when the patch is written, possibly several times.
	now := &unstructured.Unstructured{Object: handled.Body().View().Map()}
	if err := hierarchy.AppendOwnerReference(ctx, now, references...); err != nil {
		return err
	}
	handled.Patch().Apply(func(latest *unstructured.Unstructured) error {
		return hierarchy.AppendOwnerReference(context.Background(), latest, references...)
	})
	return nil
}

// Forced overwrites the name, the namespace, and the labels that children have already.
func Forced() ForcedOption { return hierarchy.Forced() }

// Strict gives children exactly the name, without a generated suffix.
func Strict() NamingOption { return hierarchy.Strict() }

// Nested also labels objects inside the children, by their fields: "spec.template".
func Nested(fields ...string) LabelOption { return hierarchy.Nested(fields...) }

// WithLabels sets the labels of the children. The default is those of the owner.
func WithLabels(labels map[string]string) LabelOption { return hierarchy.Labels(labels) }

// WithName sets the name of the children. The default is that of the owner.
func WithName(name string) NamingOption { return hierarchy.Name(name) }

// WithNamespace sets the namespace of the children. The default is that of the owner.
func WithNamespace(namespace string) NamespaceOption { return hierarchy.Namespace(namespace) }

// OwnedBy sets the owner. The default is the handled object. The owner can be typed,
// unstructured, a map, or the arguments of a handler. The kind of a typed owner without
// one is that of its Go type in the scheme of the operator's client.
func OwnedBy(owner any) OwnerOption { return hierarchy.OwnedBy(owner) }

// NotController makes an owner that is not the controller of its children. An object has
// at most one controller, and any number of other owners.
func NotController() OwnershipOption { return hierarchy.NotController() }

// NotBlocking makes an owner that can be deleted before its children.
func NotBlocking() OwnershipOption { return hierarchy.NotBlocking() }
