package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Selection restricts the lists and watches of a resource to the objects that match its selectors. The zero value selects all.
// Requests about one object are not restricted.
type Selection struct{ Labels, Fields string }

// IsEmpty reports whether all objects are selected.
func (s Selection) IsEmpty() bool { return s == Selection{} }

// narrow adds the selectors to those of a request.
func (s Selection) narrow(options *metav1.ListOptions) {
	options.LabelSelector = both(options.LabelSelector, s.Labels)
	options.FieldSelector = both(options.FieldSelector, s.Fields)
}

// both returns a selector that matches what two selectors match.
func both(one, other string) string {
	if one == "" || other == "" {
		return one + other
	}
	return one + "," + other
}
