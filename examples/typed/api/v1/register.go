// Package v1 has the Go types of the resources of kopf.dev/v1, laid out as kubebuilder does
// it. controller-gen writes the functions that copy the types.
//
// +kubebuilder:object:generate=true
// +groupName=kopf.dev
package v1

//go:generate go tool -modfile=../../../../hack/tools/controller-gen/go.mod controller-gen object paths=.

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
