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

// requestTimeout limits one read or write: a sign of life that takes longer is
// better given again.
const requestTimeout = 5 * time.Second

// peeringState is what the API server has shown of a peering object.
type peeringState struct {
	// status is nil if the object is not there.
	status  map[string]any
	version string // of the resource; empty: not known
	err     error  // nothing was seen
}

// peeringAPI is where a peering object is, or would be.
type peeringAPI interface {
	// watch shows the object, and every change of it, until the context is done or
	// the error comes.
	watch(ctx context.Context, show func(peeringState)) error
	// read returns the object as it is; a NotFoundError if it is not there.
	read(ctx context.Context) (peeringState, error)
	// patch changes the entries: nil removes one. With a version, it does so
	// only if the object has not been changed since.
	patch(ctx context.Context, version string, entries map[string]any) (peeringState, error)
}

// peeringObject is a place in a cluster.
type peeringObject struct {
	target       Target
	resource     dynamic.ResourceInterface
	subresources []string // to which the status is written; none: to the object
}

func (o *peeringObject) read(ctx context.Context) (peeringState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := o.resource.Get(ctx, o.target.Name, metav1.GetOptions{})
	return o.stateFrom(found, err)
}

func (o *peeringObject) patch(ctx context.Context, version string, entries map[string]any) (peeringState, error) {
	body := map[string]any{"status": entries}
	if version != "" {
		body["metadata"] = map[string]any{"resourceVersion": version}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return peeringState{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	changed, err := o.resource.Patch(ctx, o.target.Name, types.MergePatchType, text, metav1.PatchOptions{}, o.subresources...)
	return o.stateFrom(changed, err)
}

func (o *peeringObject) stateFrom(found *unstructured.Unstructured, err error) (peeringState, error) {
	switch {
	case apierrors.IsNotFound(err):
		return peeringState{}, o.target.notFound(false)
	case err != nil:
		return peeringState{}, err
	}
	return stateOf(found), nil
}

// stateOf is an object as it was shown. A status that is none has no entries.
func stateOf(found *unstructured.Unstructured) peeringState {
	status, _ := found.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	return peeringState{status: status, version: found.GetResourceVersion()}
}
