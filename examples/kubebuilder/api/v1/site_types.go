package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SiteSpec is what a user wants.
type SiteSpec struct {
	// Message is what the site says.
	// +kubebuilder:validation:MinLength=1
	Message string `json:"message"`

	// Image is the image of the web server, with a tag. Default: that of the operator.
	// +optional
	Image string `json:"image,omitempty"`

	// Replicas is the number of pods. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
}

// SiteStatus is what there is.
type SiteStatus struct {
	// ReadyReplicas is the number of pods that serve the message.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// URL is where the site is, within the cluster.
	// +optional
	URL string `json:"url,omitempty"`
}

// Site is a web site with one message.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec,omitempty"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteList is a list of sites.
//
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}
