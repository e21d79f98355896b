package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
