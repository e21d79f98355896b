package discovery

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// Cluster-scoped resources whose objects determine what is served.
var (
	Namespaces                = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// Access asks the API server what the operator may do with a cluster-scoped resource. Every client
// may ask, and asking leaves no rejected request: neither in the audit log, nor in the metrics.
type Access struct {
	reviews  authorization.SelfSubjectAccessReviewInterface
	resource schema.GroupVersionResource
}

// NewAccess returns the access to a resource.
func NewAccess(config *rest.Config, client *http.Client, resource schema.GroupVersionResource) (*Access, error) {
	asking, err := authorization.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the API server for permissions: %w", err)
	}
	return &Access{asking.SelfSubjectAccessReviews(), resource}, nil
}

// Permits reports whether the operator has a verb, for all objects or for the named one.
func (a *Access) Permits(ctx context.Context, verb, name string) (bool, error) {
	answer, err := a.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: a.resource.Group, Version: a.resource.Version, Resource: a.resource.Resource, Name: name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot check the permission to %s %s: %w", verb, a.resource.Resource, err)
	}
	return answer.Status.Allowed, nil
}
