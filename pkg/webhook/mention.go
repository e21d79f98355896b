package webhook

import (
	"cmp"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// mention is the object of a review in the lines of a log, as it is in those of all
// other handlers. It is looked up when a line is written.
type mention struct{ asked *question }

var _ logr.Marshaler = mention{}

// MarshalLog is a reference to the object; without a uid as long as it has none that
// would last, and without a name as long as it is to be generated.
func (m mention) MarshalLog() any {
	body := m.asked.Body()
	about := corev1.ObjectReference{
		Namespace: cmp.Or(body.Namespace(), m.asked.Namespace), Name: cmp.Or(body.Name(), m.asked.Name),
	}
	about.APIVersion, about.Kind = m.asked.resource.GVK().ToAPIVersionAndKind()
	if m.asked.Operation != admissionv1.Create {
		about.UID = body.UID()
	}
	return about
}
