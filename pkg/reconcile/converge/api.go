package converge

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// API contains the requests to the API server that the package needs. All methods return the resulting object, or
// the error of the server.
type API interface {
	Get(ctx context.Context, r selector.Resource, namespace, name string) (*unstructured.Unstructured, error)
	// Apply applies an object. With a uid or a version in its metadata, it fails with a
	// conflict if the object in the cluster has another one, or if there is none.
	Apply(ctx context.Context, r selector.Resource, content map[string]any) (*unstructured.Unstructured, error)
	// Rename writes the field managers of an object, as a JSON patch that is bound to a version.
	Rename(ctx context.Context, r selector.Resource, child Key, patch []byte) (*unstructured.Unstructured, error)
	// TryPatch asks the server whether it would accept a JSON patch that is bound to a version.
	TryPatch(ctx context.Context, r selector.Resource, child Key, patch []byte) error
	// TryCreate asks the server whether it would create an object if there was none of its name.
	TryCreate(ctx context.Context, r selector.Resource, content map[string]any) error
	// Delete deletes exactly this version of exactly this object.
	Delete(ctx context.Context, r selector.Resource, child *fact) error
}

// server implements API.
type server struct {
	dynamic dynamic.Interface
	manager string
	timeout time.Duration
}

var _ API = (*server)(nil)

func (c *server) of(r selector.Resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.dynamic.Resource(r.GVR())
	}
	return c.dynamic.Resource(r.GVR()).Namespace(namespace)
}

func (c *server) Get(ctx context.Context, r selector.Resource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.of(r, namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c *server) Apply(ctx context.Context, r selector.Resource, content map[string]any) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	options := metav1.PatchOptions{FieldManager: c.manager, Force: new(true)}
	return c.of(r, u.GetNamespace()).Patch(ctx, u.GetName(), types.ApplyPatchType, text, options)
}

func (c *server) Rename(ctx context.Context, r selector.Resource, child Key, patch []byte) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.of(r, child.Namespace).Patch(ctx, child.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: c.manager})
}

func (c *server) TryPatch(ctx context.Context, r selector.Resource, child Key, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	options := metav1.PatchOptions{FieldManager: c.manager, DryRun: []string{metav1.DryRunAll}}
	_, err := c.of(r, child.Namespace).Patch(ctx, child.Name, types.JSONPatchType, patch, options)
	return err
}

func (c *server) TryCreate(ctx context.Context, r selector.Resource, content map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	_, err := c.of(r, u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{FieldManager: c.manager, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsAlreadyExists(err) {
		return nil // the name is checked last, after validation and admission
	}
	return err
}

func (c *server) Delete(ctx context.Context, r selector.Resource, child *fact) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	background := metav1.DeletePropagationBackground
	return c.of(r, child.Namespace).Delete(ctx, child.Name, metav1.DeleteOptions{
		PropagationPolicy: &background,
		Preconditions:     &metav1.Preconditions{UID: &child.uid, ResourceVersion: &child.version},
	})
}
