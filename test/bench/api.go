package main

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "kopf.dev", Version: "v1"}

const (
	kind     = "KopfExample"
	resource = "kopfexamples"
)

// Example is the Go type of the measured resource, as in a kubebuilder project.
type Example struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ExampleSpec   `json:"spec,omitempty"`
	Status ExampleStatus `json:"status,omitempty"`
}

// ExampleSpec is the desired state.
type ExampleSpec struct {
	Host        string            `json:"host,omitempty"`
	Image       string            `json:"image,omitempty"`
	Replicas    int32             `json:"replicas,omitempty"`
	Revision    int64             `json:"revision,omitempty"`
	Enabled     bool              `json:"enabled,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Volumes     []Volume          `json:"volumes,omitempty"`
	Description string            `json:"description,omitempty"`
}

// Volume is a part of the spec.
type Volume struct {
	Name string `json:"name"`
	Size string `json:"size"`
}

// ExampleStatus is the observed state.
type ExampleStatus struct {
	URL      string `json:"url,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	Revision int64  `json:"revision,omitempty"`
}

// ExampleList is a list of examples.
type ExampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Example `json:"items"`
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(groupVersion.WithKind(kind), &Example{})
	scheme.AddKnownTypeWithName(groupVersion.WithKind(kind+"List"), &ExampleList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

// outcome returns the status that all subjects write.
func outcome(spec ExampleSpec) ExampleStatus {
	return ExampleStatus{URL: url(spec.Host), Ready: true, Revision: spec.Revision}
}

func url(host string) string { return "https://" + host + "/" }

// DeepCopyObject implements runtime.Object.
func (e *Example) DeepCopyObject() runtime.Object { return e.DeepCopy() }

// DeepCopy copies an example, like the code that controller-gen generates.
func (e *Example) DeepCopy() *Example {
	copied := *e
	e.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Spec.Environment = maps.Clone(e.Spec.Environment)
	copied.Spec.Volumes = slices.Clone(e.Spec.Volumes)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (l *ExampleList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Example, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopy()
	}
	return &copied
}
