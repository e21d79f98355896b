package kopf

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/hierarchy"
)

// Adopt makes objects the children of the handled one, before they are created:
// it sets the owner reference, the name, the namespace and the labels, where the
// object has none of its own. The objects can be typed, unstructured or maps, one
// of them or a list. See package hierarchy for the options.
//
// The name is generated from that of the handled object: it is another one at each
// call. A handler can be called again, after a crash for example, so use Strict for
// the same name each time, and client.IgnoreAlreadyExists when creating the child.
//
// Mind children of the same resource: with the labels of their parent they match its
// handlers too, and get children in turn, so give them other labels, by the option
// Labels; and with Strict they have the name of their parent, which exists already, so
// give them another one, by the option Name.
//
// Specification: Hierarchies, "Adopting".
func Adopt(ctx context.Context, objs any, options ...hierarchy.AdoptOption) error {
	return hierarchy.Adopt(ctx, objs, options...)
}

// Label puts labels on objects: those of the handled object, or the given ones.
func Label(ctx context.Context, objs any, options ...hierarchy.LabelOption) error {
	return hierarchy.Label(ctx, objs, options...)
}

// HarmonizeNaming names objects after the handled one, or as given.
func HarmonizeNaming(ctx context.Context, objs any, options ...hierarchy.NamingOption) error {
	return hierarchy.HarmonizeNaming(ctx, objs, options...)
}

// AdjustNamespace puts objects into the namespace of the handled one, or into
// the given one.
func AdjustNamespace(ctx context.Context, objs any, options ...hierarchy.NamespaceOption) error {
	return hierarchy.AdjustNamespace(ctx, objs, options...)
}

// AppendOwnerReference makes the handled object, or the given one, own others:
// they are deleted together with it.
func AppendOwnerReference(ctx context.Context, objs any, options ...hierarchy.ReferenceOption) error {
	return hierarchy.AppendOwnerReference(ctx, objs, options...)
}

// RemoveOwnerReference undoes AppendOwnerReference.
func RemoveOwnerReference(ctx context.Context, objs any, options ...hierarchy.RemovalOption) error {
	return hierarchy.RemoveOwnerReference(ctx, objs, options...)
}

// BuildOwnerReference is the reference by which others belong to an object.
func BuildOwnerReference(owner any, options ...hierarchy.OwnershipOption) (metav1.OwnerReference, error) {
	return hierarchy.OwnerReference(owner, options...)
}

// BuildObjectReference is the reference by which events are about an object.
func BuildObjectReference(obj any) (corev1.ObjectReference, error) {
	return hierarchy.ObjectReference(obj)
}

// Forced overwrites what the children have already.
func Forced() hierarchy.ForcedOption { return hierarchy.Forced() }

// Strict gives children exactly the name, without a random suffix.
func Strict() hierarchy.NamingOption { return hierarchy.Strict() }

// Nested labels parts of the children too, such as "spec.template".
func Nested(fields ...string) hierarchy.LabelOption { return hierarchy.Nested(fields...) }

// WithLabels gives the labels to put on the children instead of the owner's.
func WithLabels(labels map[string]string) hierarchy.LabelOption { return hierarchy.Labels(labels) }

// WithName gives the name to give to the children instead of the owner's.
func WithName(name string) hierarchy.NamingOption { return hierarchy.Name(name) }

// WithNamespace gives the namespace of the children instead of the owner's.
func WithNamespace(namespace string) hierarchy.NamespaceOption { return hierarchy.Namespace(namespace) }

// OwnedBy gives the owner instead of the handled object.
func OwnedBy(owner any) hierarchy.OwnerOption { return hierarchy.OwnedBy(owner) }

// NotController makes an owner that is not the controller of its children.
func NotController() hierarchy.OwnershipOption { return hierarchy.NotController() }

// NotBlocking makes an owner whose deletion does not wait for its children.
func NotBlocking() hierarchy.OwnershipOption { return hierarchy.NotBlocking() }
