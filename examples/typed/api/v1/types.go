package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EphemeralVolumeClaimSpec is the desired state.
type EphemeralVolumeClaimSpec struct {
	// Size is the size of the volume.
	Size resource.Quantity `json:"size"`
}

// EphemeralVolumeClaimStatus is the current state.
type EphemeralVolumeClaimStatus struct {
	// PVCName is the name of the PersistentVolumeClaim. It is empty until that exists.
	PVCName string `json:"pvcName,omitempty"`
}

// +kubebuilder:object:root=true

// EphemeralVolumeClaim is the resource of the tutorial: a claim for a volume that is deleted
// with the claim.
type EphemeralVolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EphemeralVolumeClaimSpec   `json:"spec,omitempty"`
	Status EphemeralVolumeClaimStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// EphemeralVolumeClaimList is a list of claims.
type EphemeralVolumeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EphemeralVolumeClaim `json:"items"`
}
