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

// requestTimeout limits one read or write. A retry serves better than a longer wait.
const requestTimeout = 5 * time.Second

// peeringState is a peering object as the API server has returned it.
type peeringState struct {
	// status is nil if the object does not exist.
	status  map[string]any
	version string // the resourceVersion; empty: unknown
	err     error  // the object could not be read
}

// peeringAPI reads and writes one peering object.
type peeringAPI interface {
	// watch shows the object, and all its changes, until the context is done or an error
	// occurs.
	watch(ctx context.Context, show func(peeringState)) error
	// read returns the current object, or a NotFoundError.
	read(ctx context.Context) (peeringState, error)
	// patch changes entries; nil removes one. With a version, it fails if the object has
	// changed since.
	patch(ctx context.Context, version string, entries map[string]any) (peeringState, error)
}

// peeringObject is the peeringAPI of an object in a cluster.
type peeringObject struct {
	target       Target
	group        string
	manager      string // the field manager of the writes
	resource     dynamic.ResourceInterface
	subresources []string // where to write the status; none: to the object itself
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
	changed, err := o.resource.Patch(ctx, o.target.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: o.manager}, o.subresources...)
	return o.stateFrom(changed, err)
}

func (o *peeringObject) stateFrom(found *unstructured.Unstructured, err error) (peeringState, error) {
	switch {
	case apierrors.IsNotFound(err):
		return peeringState{}, o.target.notFound(o.group, false)
	case err != nil:
		return peeringState{}, err
	}
	return stateOf(found), nil
}

// stateOf returns the state of an existing object. An invalid status has no entries.
func stateOf(found *unstructured.Unstructured) peeringState {
	status, _ := found.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	return peeringState{status: status, version: found.GetResourceVersion()}
}
