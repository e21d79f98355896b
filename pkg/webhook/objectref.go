package webhook

import (
	"cmp"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// objectReference logs the object of a review in the same form as the logs of all
// other handlers. It is evaluated only when a line is written.
type objectReference struct{ request *admissionRequest }

var _ logr.Marshaler = objectReference{}

// MarshalLog returns a reference to the object. It has no uid before the object is
// stored, and no name before the name is generated.
func (r objectReference) MarshalLog() any {
	body := r.request.Body()
	reference := corev1.ObjectReference{
		Namespace: cmp.Or(body.Namespace(), r.request.Namespace), Name: cmp.Or(body.Name(), r.request.Name),
	}
	reference.APIVersion, reference.Kind = r.request.resource.GVK().ToAPIVersionAndKind()
	if r.request.Operation != admissionv1.Create {
		reference.UID = body.UID()
	}
	return reference
}
