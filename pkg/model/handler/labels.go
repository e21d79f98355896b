package handler

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelSelector is what of the filters of labels the API server can check itself:
// presence, absence, and equality with a text; nil if there is nothing of that. It
// lets pass whatever the callbacks may have something to say about.
//
// Specification: Admission control, "Handler options".
func (d *Declaration) LabelSelector() *metav1.LabelSelector {
	var requirements []metav1.LabelSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		requirement := metav1.LabelSelectorRequirement{Key: key}
		switch want := d.Labels[key].want.(type) {
		case presence:
			requirement.Operator = metav1.LabelSelectorOpDoesNotExist
			if want {
				requirement.Operator = metav1.LabelSelectorOpExists
			}
		case string:
			requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{want}
		default:
			continue
		}
		requirements = append(requirements, requirement)
	}
	if requirements == nil {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: requirements}
}
