package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// Version is which object there is, and in which version.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// ListVersions reads which objects of a namespace there are now; of all namespaces
// if it is empty. The answer is consistent: no write that was committed before
// is missing in it. Of the objects, only their metadata is transferred.
func (c *Client) ListVersions(ctx context.Context, namespace string) (map[types.NamespacedName]Version, error) {
	versions := map[types.NamespacedName]Version{}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.metadata.Namespace(namespace).List(ctx, options)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("it has a %T", item)
		}
		versions[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = Version{object.UID, object.ResourceVersion}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the list of %s cannot be read: %w", c.resource, err)
	}
	return versions, nil
}

// ManagedFields reads who has written which fields of an object, as the API server knows
// it; the objects themselves are kept without that.
func (c *Client) ManagedFields(ctx context.Context, key types.NamespacedName) ([]metav1.ManagedFieldsEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
	defer cancel()
	found, err := c.metadata.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("the managers of the fields cannot be read: %w", err)
	}
	return found.ManagedFields, nil
}
