// Package v1 has the Go types of the resources of kopf.dev/v1, laid out as
// kubebuilder does it. There, controller-gen would write deepcopy.go, and the
// resource definition, out of markers at the types.
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
