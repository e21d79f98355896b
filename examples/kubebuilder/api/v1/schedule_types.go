package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScheduleSpec says when a site needs how many replicas.
type ScheduleSpec struct {
	// Site is the name of the site, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	Site string `json:"site"`

	// From and To are the first hour of the day and the one after the last, in UTC.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=23
	From int `json:"from"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=24
	To int `json:"to"`

	// Replicas is the number of replicas in these hours. Otherwise, the site has none.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Replicas int32 `json:"replicas"`
}

// ScheduleStatus is what the schedule has done.
type ScheduleStatus struct {
	// Active is true in the hours of the schedule.
	// +optional
	Active bool `json:"active,omitempty"`
}

// Schedule scales a site by the time of the day.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Site",type=string,JSONPath=`.spec.site`
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
type Schedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ScheduleSpec   `json:"spec,omitempty"`
	Status ScheduleStatus `json:"status,omitempty"`
}

// ScheduleList is a list of schedules.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Schedule `json:"items"`
}
