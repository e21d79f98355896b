package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// others contains the changes of other clients to the object by kind. They must not be lost.
type others struct{ label, finalizer, spec bool }

// The values that others write.
const (
	otherLabel     = "example.com/third"
	otherFinalizer = "example.com/third"
	otherField     = "third"
)

// meddle makes the change of another client, by the name of the fault.
func (r *run) meddle(what string) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj, err := r.current()
		if err != nil {
			return err
		}
		r.history.meddling(what, obj)
		return cluster.Client().Update(context.Background(), obj)
	})
	r.history.note("another client has written: %s (%v)", what, err)
}

// meddling returns a fault that changes the object, and records what must not be lost.
func (h *history) meddling(what string, obj *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case what == "finalizers" && obj.GetDeletionTimestamp() == nil:
		obj.SetFinalizers(append(obj.GetFinalizers(), otherFinalizer))
		h.others.finalizer = true
	case what == "spec":
		spec := obj.Object["spec"].(map[string]any)
		items, _ := spec["items"].([]any)
		spec["items"] = append(items, otherField)
		h.others.spec = true
	default:
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[otherLabel] = "yes"
		obj.SetLabels(labels)
		h.others.label = true
	}
}

// missing returns an error if changes of others are lost.
func (o others) missing(s state) error {
	switch {
	case o.label && s.body.Labels()[otherLabel] != "yes":
		return fmt.Errorf("another client's label is lost")
	case o.finalizer && !contains(s.body.Finalizers(), otherFinalizer):
		return fmt.Errorf("another client's finalizer is lost")
	case o.spec && count(s.items(), otherField) != 1:
		return fmt.Errorf("another client's item is in the spec %d times", count(s.items(), otherField))
	}
	return nil
}

// letGo removes the finalizer of the others, so that the object can be deleted.
func (r *run) letGo(finalizer string) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj, err := r.current()
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return f == finalizer }))
		return cluster.Client().Update(context.Background(), obj)
	})
	r.history.mu.Lock()
	r.history.others.finalizer = r.history.others.finalizer && finalizer != otherFinalizer
	r.history.mu.Unlock()
	r.history.note("another client has removed its finalizer: %s (%v)", finalizer, err)
}

// deleteObject deletes the object like kubectl delete.
func (r *run) deleteObject() {
	obj, err := r.current()
	if err == nil {
		r.heldAtEnd = contains(obj.GetFinalizers(), ourFinalizer)
		err = cluster.Client().Delete(context.Background(), obj)
	}
	r.history.note("another client has deleted the object (%v)", err)
	r.letGo(firstFinalizer)
}

// replaceObject replaces the object regardless of finalizers.
func (r *run) replaceObject() {
	obj, err := r.current()
	if err == nil {
		err = cluster.Client().Patch(context.Background(), obj, merge(`{"metadata":{"finalizers":null}}`))
		err = cmp.Or(err, client.IgnoreNotFound(cluster.Client().Delete(context.Background(), obj)))
		another := testenv.NewObject(obj.GetKind(), obj.GetNamespace(), obj.GetName(), obj.Object["spec"].(map[string]any))
		err = cmp.Or(err, cluster.Client().Create(context.Background(), another))
	}
	r.history.note("another client has replaced the object (%v)", err)
}

// items returns the list that handlers and others append to.
func (s state) items() []any {
	items, _ := s.body.Spec().List("items")
	return items
}

// seenBy reports whether the changes by others are in the essence of a start.
func (o others) seenBy(s start) bool {
	labels, _, _ := unstructured.NestedStringMap(s.essence, "metadata", "labels")
	items, _, _ := unstructured.NestedSlice(s.essence, "spec", "items")
	return (!o.label || labels[otherLabel] == "yes") && (!o.spec || count(items, otherField) > 0)
}

// withoutOthers removes the changes by others from a decoded object or essence.
func withoutOthers(raw map[string]any) {
	metadata, _ := raw["metadata"].(map[string]any)
	if labels, ok := metadata["labels"].(map[string]any); ok {
		delete(labels, otherLabel)
		if len(labels) == 0 {
			delete(metadata, "labels")
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	if finalizers = without(finalizers, otherFinalizer); len(finalizers) == 0 {
		delete(metadata, "finalizers")
	} else {
		metadata["finalizers"] = finalizers
	}
	if _, ok := raw["metadata"]; ok && len(metadata) == 0 {
		delete(raw, "metadata")
	}
	if spec, ok := raw["spec"].(map[string]any); ok {
		items, _ := spec["items"].([]any)
		if items = without(items, otherField); len(items) == 0 {
			delete(spec, "items")
		} else {
			spec["items"] = items
		}
	}
}

func without(list []any, item any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(i any) bool { return i == item })
}

func count(list []any, item any) int { return len(list) - len(without(list, item)) }
