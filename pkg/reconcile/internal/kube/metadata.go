package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
)

// Version identifies an object and its version.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// ListVersions returns the versions of all selected objects of a share in a namespace, or in all
// namespaces if it is empty. The answer is consistent: it includes all writes that
// were committed before. Only the metadata of the objects is transferred.
func (c *Client) ListVersions(ctx context.Context, namespace string, share *Share) (map[types.NamespacedName]Version, error) {
	versions := map[types.NamespacedName]Version{}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
		defer cancel()
		return c.metadata.Namespace(namespace).List(ctx, options)
	}
	var options metav1.ListOptions
	c.selection.narrow(&options)
	share.restrict(&options)
	err := pager.New(list).EachListItem(ctx, options, func(item runtime.Object) error {
		object, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("unexpected item %T", item)
		}
		if !share.Has(object.Namespace, object.UID) {
			return nil
		}
		versions[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = Version{object.UID, object.ResourceVersion}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", c.resource, err)
	}
	return versions, nil
}

// Find returns the uid of the object with this name, selected or not, or "" if there is none, and the version
// of the list. Like ListVersions, it is consistent.
func (c *Client) Find(ctx context.Context, key types.NamespacedName) (types.UID, string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
	defer cancel()
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()
	list, err := c.metadata.Namespace(key.Namespace).List(ctx, metav1.ListOptions{FieldSelector: byName})
	if err != nil {
		return "", "", fmt.Errorf("cannot list %s: %w", c.resource, err)
	}
	for _, item := range list.Items {
		if item.Name == key.Name && item.Namespace == key.Namespace {
			return item.UID, list.ResourceVersion, nil
		}
	}
	return "", list.ResourceVersion, nil
}

// ManagedFields returns the managed fields of an object. Snapshots omit them.
func (c *Client) ManagedFields(ctx context.Context, key types.NamespacedName) ([]metav1.ManagedFieldsEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, c.networking.RequestTimeout)
	defer cancel()
	found, err := c.metadata.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the managed fields: %w", err)
	}
	return found.ManagedFields, nil
}
