// Package v1 has the Go types of the resources of kopf.dev/v1, as kubebuilder lays
// them out.
//
// +kubebuilder:object:generate=true
// +groupName=kopf.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API that the types belong to.
var GroupVersion = schema.GroupVersion{Group: "kopf.dev", Version: "v1"}

// AddToScheme makes the types known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &EphemeralVolumeClaim{}, &EphemeralVolumeClaimList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
