package apiserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection restricts a list or a watch.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// selection returns the restrictions of a request.
func (r *request) selection() (selection, error) {
	byLabel, err := labels.Parse(r.query.Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("unable to parse the label selector: " + err.Error())
	}
	byField, err := fields.ParseSelector(r.query.Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest("unable to parse the field selector: " + err.Error())
	}
	for _, one := range byField.Requirements() {
		isKnown := one.Field == "metadata.name" || one.Field == "metadata.namespace" || slices.Contains(r.of.SelectableFields, one.Field)
		if r.of.NeedsVersion() && !isKnown {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + one.Field)
		}
	}
	return selection{namespace: r.key.Namespace, labels: byLabel, fields: byField}, nil
}

// matches reports whether an object is selected.
func (s selection) matches(object *unstructured.Unstructured) bool {
	if s.namespace != "" && object.GetNamespace() != s.namespace || !s.labels.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	found := fields.Set{}
	for _, one := range s.fields.Requirements() {
		path := one.Field
		if rest, ok := strings.CutPrefix(path, "regarding."); ok { // selectors name it in another way
			path = "involvedObject." + rest
		}
		value, exists, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		found[one.Field] = ""
		if err == nil && exists {
			found[one.Field] = fmt.Sprint(value)
		}
	}
	return s.fields.Matches(found)
}
