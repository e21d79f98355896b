package testenv

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Sized is a Go type of objects with the number spec.size. Objects with another value there do not
// fit it.
type Sized struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject returns a copy.
func (s *Sized) DeepCopyObject() runtime.Object {
	c := *s
	c.ObjectMeta = *s.DeepCopy()
	return &c
}
