package reconcile

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// objectRef identifies an object in log lines. It is resolved only when a line is written,
// because most lines are not.
type objectRef struct {
	engine *Engine
	key    object.Key
}

var _ logr.Marshaler = objectRef{}

// MarshalLog returns a reference to the object, without the uid if the object is gone.
func (r objectRef) MarshalLog() any {
	about := corev1.ObjectReference{Namespace: r.key.Namespace, Name: r.key.Name}
	found := r.engine.resources.get(r.key.Resource)
	if found == nil {
		return about
	}
	about.APIVersion, about.Kind = found.GVK().ToAPIVersionAndKind()
	if snapshot := found.Cached(r.key.NamespacedName); snapshot != nil {
		about.UID = snapshot.GetUID()
	}
	return about
}
