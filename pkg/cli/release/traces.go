package release

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// finder finds what an operator has stored on the objects of one resource.
type finder struct {
	settings.Persistence

	ids     []string // of handlers whose records are the operator's
	ensures bool     // the operator has handlers that keep children
}

// traces are what an operator has stored on one object.
type traces struct {
	// patch is a merge patch that removes them, without the status; status is that of the status.
	patch, status map[string]any
	// finalizer is set if the object has the finalizer; held, if it is being deleted, too.
	finalizer, held bool
	// foreign are the names of records of handlers that are not the operator's.
	foreign []string
	// others are the finalizers of other controllers; deleting is set if the object is being deleted.
	others   []string
	deleting bool
	// orphans are places of children that no garbage collector deletes with the object.
	orphans []string
}

// isEmpty reports whether there is nothing to remove.
func (t *traces) isEmpty() bool { return len(t.patch) == 0 && len(t.status) == 0 }

// find finds the traces on an object.
func (f *finder) find(ctx context.Context, obj *unstructured.Unstructured) (*traces, error) {
	body := object.NewBody(obj.Object)
	t := &traces{}
	into := storage.Patch{}
	if lister, ok := f.Progress.(storage.RecordLister); ok {
		foreign, err := lister.UnknownRecords(ctx, body, f.ids)
		if err != nil {
			return nil, err
		}
		t.foreign = foreign
	}
	if _, ok := f.Progress.(storage.TraceRemover); ok { // others may not be called in a dry run
		for _, id := range f.ids { // also what cannot be read
			if err := f.Progress.Purge(ctx, body, into, id); err != nil {
				return nil, err
			}
		}
	}
	// Afterwards, because RemoveTraces removes whole fields, of which Purge removes single records.
	for _, each := range []any{f.DiffBase, f.Progress} {
		if remover, ok := each.(storage.TraceRemover); ok {
			remover.RemoveTraces(body, into)
		}
	}

	// What the operator stores without a storage.
	var keys []string
	if prefix := storage.RequestPrefix(f.DiffBase, f.Progress) + "/"; !storage.HasCopiedAnnotations(body) {
		keys = append(keys, prefix+request.Handled, prefix+reconcile.RevisionsAnnotation)
		for _, verb := range []request.Verb{request.Retry, request.Rerun, request.Skip, request.Suspend} {
			keys = append(keys, prefix+verb.Name())
		}
	}
	if f.ensures {
		keys = append(keys, convergence.PlacesAnnotation)
		places := convergence.ReadPlaces(body)
		if !places.AreReachable(body.Namespace()) {
			for place := range places {
				t.orphans = append(t.orphans, place.String())
			}
			slices.Sort(t.orphans)
		}
	}
	for _, key := range keys {
		if _, present := body.Annotation(key); present {
			into.Set(object.Path{"metadata", "annotations", key}, nil)
		}
	}
	collapse(obj.Object, into)

	t.finalizer = slices.Contains(obj.GetFinalizers(), f.Finalizer)
	t.others = othersOf(obj.GetFinalizers(), f.Finalizer)
	t.deleting = obj.GetDeletionTimestamp() != nil
	t.held = t.finalizer && t.deleting
	if t.finalizer {
		rest := slices.DeleteFunc(obj.GetFinalizers(), func(name string) bool { return name == f.Finalizer })
		into.Set(object.Path{"metadata", "finalizers"}, rest)
	}
	if status, ok := into["status"].(map[string]any); ok && len(status) > 0 {
		t.status = status
	}
	delete(into, "status")
	t.patch = into
	return t, nil
}

// collapse removes the mappings that the patch leaves empty, except for those at the top.
func collapse(present, patch map[string]any) {
	for key, value := range patch {
		before, _ := present[key].(map[string]any)
		if inner, isMapping := value.(map[string]any); isMapping && key != "metadata" {
			for name, value := range inner {
				if isEmptied(before[name], value) {
					inner[name] = nil
				}
			}
		}
	}
}

// isEmptied reports whether a patch leaves nothing of a value. It removes inner mappings that the
// patch leaves empty.
func isEmptied(present, patch any) bool {
	before, isPresent := present.(map[string]any)
	inner, isMapping := patch.(map[string]any)
	if !isPresent || !isMapping {
		return patch == nil
	}
	for key, value := range inner {
		if isEmptied(before[key], value) {
			inner[key] = nil
		}
	}
	for key := range before {
		if value, changes := inner[key]; !changes || value != nil {
			return false
		}
	}
	return true
}
