package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// FindResource returns the handled resource that a person has named, as for kubectl. It returns a
// *NoHandlersError for a resource that is served and not handled.
func FindResource(name string, handled []discovery.SelectedResource, served []selector.Resource) (discovery.SelectedResource, error) {
	named := selector.New(name)
	if err := named.Err(); err != nil {
		return discovery.SelectedResource{}, err
	}
	for _, one := range handled { // may be of a version that is not preferred
		if named.Match(one.Resource) {
			return one, nil
		}
	}
	found, err := named.Resolve(served)
	if err != nil {
		return discovery.SelectedResource{}, err
	}
	var names []string
	for _, one := range handled {
		if slices.ContainsFunc(found, func(r selector.Resource) bool { return r.Group == one.Group && r.Plural == one.Plural }) {
			return one, nil
		}
		names = append(names, nameOf(one.Resource))
	}
	if len(found) == 0 {
		return discovery.SelectedResource{}, fmt.Errorf("the cluster does not serve a resource %q", name)
	}
	return discovery.SelectedResource{}, &NoHandlersError{Resource: nameOf(found[0]), Declared: names, found: found[0]}
}

// pageSize is the number of objects in memory.
const pageSize = 250

// EachPage lists objects, and calls a function for each page of them. If the list takes so long
// that the API server forgets its version, it continues with the current one behind the last
// object: each object that exists all the time is seen exactly once.
func EachPage(ctx context.Context, api dynamic.ResourceInterface, options metav1.ListOptions, do func([]unstructured.Unstructured) error) error {
	options.Limit = pageSize
	for {
		page, err := api.List(ctx, options)
		var expired apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &expired) {
			token := expired.Status().Continue // which the API server offers
			if token != "" && token != options.Continue {
				options.Continue = token
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := do(page.Items); err != nil {
			return err
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
	}
}
