package relist

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// proof is the last object that a watch has shown in the version of its write. If that version of the
// cluster still has the object in that version, it is the same history, however high the versions are now. The
// zero value proves nothing.
type proof struct {
	key     types.NamespacedName
	uid     types.UID
	version string
}

// add records an event of a watch. A deletion has a version in which the object does not exist, so the one before
// it remains the proof. The initial events of a list by a watch have versions from long before it.
func (p *proof) add(event watch.Event) {
	if event.Type != watch.Added && event.Type != watch.Modified && event.Type != watch.Bookmark {
		return
	}
	object, err := apimeta.Accessor(event.Object)
	switch {
	case err != nil:
	case event.Type != watch.Bookmark:
		*p = proof{types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID(), object.GetResourceVersion()}
	case object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		*p = proof{}
	}
}

// holds asks the API server whether its history is the one of the proof.
func (p proof) holds(ctx context.Context, list cache.ListWithContextFunc) bool {
	if p.version == "" {
		return false
	}
	selector := fields.Set{metav1.ObjectNameField: p.key.Name}
	if p.key.Namespace != "" {
		selector["metadata.namespace"] = p.key.Namespace
	}
	answer, err := list(ctx, metav1.ListOptions{
		FieldSelector: selector.String(), ResourceVersion: p.version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err != nil {
		return false
	}
	found := false
	_ = apimeta.EachListItem(answer, func(item runtime.Object) error { // what is no list has no items
		object, err := apimeta.Accessor(item)
		found = found || err == nil && object.GetUID() == p.uid && object.GetResourceVersion() == p.version
		return nil
	})
	return found
}
