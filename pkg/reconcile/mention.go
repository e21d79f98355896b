package reconcile

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// mention is an object in the lines of a log. What is known of it is looked up when
// a line is written: most loggers write none.
type mention struct {
	engine *Engine
	key    object.Key
}

var _ logr.Marshaler = mention{}

// MarshalLog is a reference to the object; without the uid of one that is gone.
func (m mention) MarshalLog() any {
	about := corev1.ObjectReference{Namespace: m.key.Namespace, Name: m.key.Name}
	resource := m.engine.served.get(m.key.Resource)
	if resource == nil {
		return about
	}
	about.APIVersion, about.Kind = resource.GVK().ToAPIVersionAndKind()
	if snapshot := resource.cached(m.key.NamespacedName); snapshot != nil {
		about.UID = snapshot.GetUID()
	}
	return about
}
