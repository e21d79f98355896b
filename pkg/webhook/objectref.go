package webhook

import (
	"cmp"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// objectReference is the object of a review in the lines of a log, as it is in those of all
// other handlers. It is looked up when a line is written.
type objectReference struct{ request *admissionRequest }

var _ logr.Marshaler = objectReference{}

// MarshalLog is a reference to the object; without a uid as long as it has none that
// would last, and without a name as long as it is to be generated.
func (m objectReference) MarshalLog() any {
	body := m.request.Body()
	about := corev1.ObjectReference{
		Namespace: cmp.Or(body.Namespace(), m.request.Namespace), Name: cmp.Or(body.Name(), m.request.Name),
	}
	about.APIVersion, about.Kind = m.request.resource.GVK().ToAPIVersionAndKind()
	if m.request.Operation != admissionv1.Create {
		about.UID = body.UID()
	}
	return about
}
