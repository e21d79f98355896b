package peering

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// requestPatience limits one read or write: a sign of life that takes longer is
// better given again.
const requestPatience = 5 * time.Second

// sight is what the API server has shown of a peering object.
type sight struct {
	// status is nil if the object is not there.
	status  map[string]any
	version string // of the resource; empty: not known
	err     error  // nothing was seen
}

// place is where a peering object is, or would be.
type place interface {
	// watch shows the object, and every change of it, until the context is done or
	// the error comes.
	watch(ctx context.Context, show func(sight)) error
	// read returns the object as it is; a NotFoundError if it is not there.
	read(ctx context.Context) (sight, error)
	// patch changes the entries: nil removes one. With a version, it does so
	// only if the object has not been changed since.
	patch(ctx context.Context, version string, entries map[string]any) (sight, error)
}

// object is a place in a cluster.
type object struct {
	target       Target
	api          dynamic.ResourceInterface
	subresources []string // to which the status is written; none: to the object
}

func (o *object) read(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	found, err := o.api.Get(ctx, o.target.Name, metav1.GetOptions{})
	return o.seen(found, err)
}

func (o *object) patch(ctx context.Context, version string, entries map[string]any) (sight, error) {
	body := map[string]any{"status": entries}
	if version != "" {
		body["metadata"] = map[string]any{"resourceVersion": version}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return sight{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	changed, err := o.api.Patch(ctx, o.target.Name, types.MergePatchType, text, metav1.PatchOptions{}, o.subresources...)
	return o.seen(changed, err)
}

func (o *object) seen(found *unstructured.Unstructured, err error) (sight, error) {
	switch {
	case apierrors.IsNotFound(err):
		return sight{}, o.target.absent(false)
	case err != nil:
		return sight{}, err
	}
	return sightOf(found), nil
}

// sightOf is an object as it was shown. A status that is none has no entries.
func sightOf(found *unstructured.Unstructured) sight {
	status, _ := found.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	return sight{status: status, version: found.GetResourceVersion()}
}
