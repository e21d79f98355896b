package release

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// webhookConfigurations are the resources of the configurations that operators manage.
var webhookConfigurations = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// removeWebhooks deletes the webhook configurations that the operator manages, and returns them. They
// call an operator that does not run anymore, and could reject the release. A dry run, and the
// release of some resources only, delete nothing.
func (r *Releaser) removeWebhooks(ctx context.Context) (removed []string, err error) {
	name := r.Settings.Admission.Managed
	if name == "" || !r.All {
		return nil, nil
	}
	for _, resource := range webhookConfigurations {
		if r.DryRun {
			_, err = r.reading.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		} else {
			err = r.writing.Resource(resource).Delete(ctx, name, metav1.DeleteOptions{})
		}
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return removed, fmt.Errorf("the configuration %s/%s of the admission handlers cannot be removed: %w", resource.Resource, name, err)
		default:
			removed = append(removed, resource.Resource+"/"+name)
		}
	}
	return removed, nil
}

// removeConversions ends the conversion of objects by the operator in the definitions, and returns what it has changed, and
// what stays because the API server needs it for objects of several versions.
func (r *Releaser) removeConversions(ctx context.Context) (removed, left []string, err error) {
	graphs, _ := r.Conversions.Resolve(r.served.Resources) // what is not served has no objects
	for _, name := range slices.Sorted(maps.Keys(graphs)) {
		if !r.All || r.Settings.Admission.Managed == "" {
			left = append(left, fmt.Sprintf("The conversion in the definition %s, if the operator or you have written it: requests that need it fail without the operator.", name))
			continue
		}
		var removable bool
		var reason string
		err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
			removable, reason, err = r.removeConversion(ctx, name)
			return err
		})
		switch {
		case err != nil:
			return removed, left, err
		case reason != "":
			left = append(left, fmt.Sprintf("The conversion in the definition %s: %s. Requests that need it fail without the operator. "+
				"Migrate the objects to one version, and serve no other, before you uninstall it.", name, reason))
		case removable:
			removed = append(removed, "customresourcedefinitions/"+name+" (spec.conversion)")
		}
	}
	return removed, left, nil
}

// removeConversion ends the conversion in one definition, if it is of the operator and the API server does not need it; the
// reason says why it does. It fails with a conflict if the definition has changed since it was read.
func (r *Releaser) removeConversion(ctx context.Context, name string) (removable bool, reason string, err error) {
	definition, err := r.reading.Resource(discovery.CustomResourceDefinitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, "", fmt.Errorf("the definition %s, whose objects the operator converts, cannot be read: %w", name, err)
	}
	removable, reason, err = configurations.IsConversionRemovable(definition)
	if err != nil {
		return false, "", fmt.Errorf("the conversion in the definition %s: %w", name, err)
	}
	if !removable || r.DryRun {
		return removable, reason, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"conversion":{"strategy":"None","webhook":null}}}`, definition.GetResourceVersion())
	if _, err := r.writing.Resource(discovery.CustomResourceDefinitions).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return false, "", fmt.Errorf("the conversion in the definition %s cannot be removed: %w", name, err)
	}
	return true, "", nil
}
