package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject copies the object, for caches and clients.
func (in *EphemeralVolumeClaim) DeepCopyObject() runtime.Object {
	if in == nil {
		return nil
	}
	out := &EphemeralVolumeClaim{}
	in.deepCopyInto(out)
	return out
}

func (in *EphemeralVolumeClaim) deepCopyInto(out *EphemeralVolumeClaim) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Size = in.Spec.Size.DeepCopy()
}

// DeepCopyObject copies the list with its objects.
func (in *EphemeralVolumeClaimList) DeepCopyObject() runtime.Object {
	if in == nil {
		return nil
	}
	out := &EphemeralVolumeClaimList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]EphemeralVolumeClaim, len(in.Items))
	}
	for i := range in.Items {
		in.Items[i].deepCopyInto(&out.Items[i])
	}
	return out
}
