package hierarchy

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BuildOwnerReference returns the reference that a child has to its owner; the owner
// is anything that OwnerOf takes. By default the owner controls the child and
// is not removed before it; see NotController and NotBlocking. It fails if the
// owner's apiVersion, kind, name or uid is unknown.
func BuildOwnerReference(owner any, opts ...OwnershipOption) (metav1.OwnerReference, error) {
	c, err := collect(opts)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	resolved, err := OwnerOf(owner)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("the owner reference cannot be created: %w", err)
	}
	return c.ownerReference(resolved)
}

func (c *config) ownerReference(owner Owner) (metav1.OwnerReference, error) {
	if err := owner.checkReference(); err != nil {
		return metav1.OwnerReference{}, err
	}
	if owner.UID == "" {
		return metav1.OwnerReference{}, fmt.Errorf("the owner, %s, has no uid: it must exist in the cluster before other objects can belong to it", owner)
	}
	controller := !c.notController
	blocking := !c.notBlocking
	return metav1.OwnerReference{
		APIVersion:         owner.APIVersion,
		Kind:               owner.Kind,
		Name:               owner.Name,
		UID:                owner.UID,
		Controller:         &controller,
		BlockOwnerDeletion: &blocking,
	}, nil
}

// BuildObjectReference returns the reference by which events and fields of other
// objects name an object; the object is anything that OwnerOf takes. It fails
// if the object's apiVersion, kind or name is unknown. Namespace and uid may be
// empty.
func BuildObjectReference(obj any) (corev1.ObjectReference, error) {
	owner, err := OwnerOf(obj)
	if err != nil {
		return corev1.ObjectReference{}, err
	}
	return owner.objectReference()
}

// ObjectReferences is BuildObjectReference for one object or a list. The scheme supplies
// the kinds of typed objects that lack them; it may be nil.
func ObjectReferences(objs any, scheme *runtime.Scheme) ([]corev1.ObjectReference, error) {
	var refs []corev1.ObjectReference
	err := each("", objs, func(obj any) error {
		owner, err := ownerWith(obj, scheme)
		if err != nil {
			return err
		}
		ref, err := owner.objectReference()
		refs = append(refs, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

func ownerWith(obj any, scheme *runtime.Scheme) (Owner, error) {
	if typed, ok := obj.(runtime.Object); ok && scheme != nil {
		return OwnerFromScheme(typed, scheme)
	}
	return OwnerOf(obj)
}

func (o Owner) objectReference() (corev1.ObjectReference, error) {
	if err := o.checkReference(); err != nil {
		return corev1.ObjectReference{}, err
	}
	return corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: o.Namespace, UID: o.UID,
	}, nil
}

func (o Owner) checkReference() error {
	if o.Name == "" {
		return errors.New("the referenced object has no name: it must exist in the cluster first")
	}
	if o.APIVersion == "" || o.Kind == "" {
		return fmt.Errorf("%s has no apiVersion and kind, as is usual for typed objects: "+
			"pass OwnerFromScheme(obj, scheme) instead of the object, or set its TypeMeta", o)
	}
	return nil
}
