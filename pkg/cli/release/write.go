package release

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/storage"
)

// writer releases the objects of one resource, several at the same time.
type writer struct {
	*Releaser

	resource discovery.SelectedResource
	finder   *finder

	mu       sync.Mutex
	report   ResourceReport
	failures int // since the last success
}

// attempts is how often an object is tried that others change.
const attempts = 8

// pause is the time between two attempts.
const pause = 100 * time.Millisecond

// object releases one object, and counts it.
func (w *writer) object(ctx context.Context, obj *unstructured.Unstructured) {
	if w.isHopeless() {
		return
	}
	name := nameOf(obj)
	last := obj
	uid := obj.GetUID()
	seen := &traces{}
	isUncertain := false
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			obj, err = w.reread(ctx, obj.GetNamespace(), obj.GetName(), obj)
			if err == nil && (obj.GetResourceVersion() == "" || obj.GetUID() != uid) {
				if !isUncertain { // it was deleted by others
					seen = &traces{}
				}
				break
			}
		}
		if err == nil {
			err = w.try(ctx, obj, seen)
		}
		isUncertain = isUncertain || !isAnswer(err)
		if err == nil || !isRepeatable(err) || !sleep.For(ctx, pause<<attempt) {
			break
		}
	}
	if isHeld := seen.held && !w.AbandonDeletions; err == nil && !isHeld {
		err = w.erase(ctx, last)
	}
	w.count(ctx, name, seen, err)
}

// erase lets storages outside of the objects erase what they keep of an object that is released. It repeats failures,
// because another release does not find an object that is gone by then.
func (w *writer) erase(ctx context.Context, obj *unstructured.Unstructured) (err error) {
	body := object.NewBody(obj.Object)
	for attempt := range attempts {
		err = storage.EraseAll(ctx, body, storage.Erasers(w.finder.DiffBase, w.finder.Progress))
		if err == nil || !sleep.For(ctx, pause<<attempt) {
			break
		}
	}
	return err
}

// try removes the traces of this version of the object, and records what it has seen.
func (w *writer) try(ctx context.Context, obj *unstructured.Unstructured, seen *traces) error {
	t, err := w.finder.find(ctx, obj)
	switch {
	case err != nil:
		return err
	case len(t.foreign) > 0:
		return &ForeignError{map[string]int{t.foreign[0]: 1}}
	case t.isEmpty() && seen.isEmpty():
		*seen = *t
		return nil
	case t.isEmpty(): // released by a write without an answer, or by others
		return nil
	}
	*seen = *t
	if t.held && !w.AbandonDeletions {
		return nil
	}
	version := obj.GetResourceVersion()
	if len(t.status) > 0 && !w.resource.Status {
		t.patch["status"] = t.status
	} else if len(t.status) > 0 {
		version, err = w.patch(ctx, obj, version, map[string]any{"status": t.status}, "status")
		if err != nil {
			return err
		}
	}
	if len(t.patch) > 0 { // the finalizer goes last, or together with the rest
		_, err = w.patch(ctx, obj, version, t.patch)
	}
	return err
}

// patch sends a merge patch for one version of an object, and returns the new version.
func (w *writer) patch(ctx context.Context, obj *unstructured.Unstructured, version string, patch map[string]any, subresources ...string) (string, error) {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	data, err := json.Marshal(patch)
	if err != nil {
		return "", err
	}
	changed, err := api(w.writing, w.resource.Resource, obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return "", err
	}
	return changed.GetResourceVersion(), nil
}

// reread reads the current version of an object. An object that does not exist has no version.
func (w *writer) reread(ctx context.Context, namespace, name string, former *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	obj, err := api(w.reading, w.resource.Resource, namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &unstructured.Unstructured{Object: map[string]any{}}, nil
	case err != nil:
		return former, err
	}
	return obj, nil
}

// count counts an object.
func (w *writer) count(ctx context.Context, name string, seen *traces, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Objects++
	switch {
	case err == nil:
		w.report.add(name, seen, w.AbandonDeletions)
		w.failures = 0
	case ctx.Err() == nil:
		w.report.fail(name, err)
		w.failures++
	}
}

// isHopeless reports whether so many writes have failed, one after another, that the others would
// fail, too.
func (w *writer) isHopeless() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures >= maxFailures
}

// isAnswer reports whether the outcome of a request is known.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status) && !apierrors.IsInternalError(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err)
}

// isRepeatable reports whether another attempt can succeed: the object has changed, or it is
// unknown whether the write has arrived.
func isRepeatable(err error) bool {
	var foreign *ForeignError
	return !errors.As(err, &foreign) && (!isAnswer(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err))
}
