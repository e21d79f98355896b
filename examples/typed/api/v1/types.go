package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EphemeralVolumeClaimSpec is what a person wants.
type EphemeralVolumeClaimSpec struct {
	// Size is the size of the volume.
	Size resource.Quantity `json:"size"`
}

// EphemeralVolumeClaimStatus is what the operator has made of it.
type EphemeralVolumeClaimStatus struct {
	// PVCName is the name of the PersistentVolumeClaim; empty: there is none yet.
	PVCName string `json:"pvcName,omitempty"`
}

// EphemeralVolumeClaim is a volume that goes with its claim: the resource of the
// tutorial.
type EphemeralVolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EphemeralVolumeClaimSpec   `json:"spec,omitempty"`
	Status EphemeralVolumeClaimStatus `json:"status,omitempty"`
}

// EphemeralVolumeClaimList is a list of them.
type EphemeralVolumeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EphemeralVolumeClaim `json:"items"`
}
