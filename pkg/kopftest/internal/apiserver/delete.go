package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/webhook"
)

// deleteOptions returns the options of a deletion, from the body or the query.
func (r *request) deleteOptions() (options metav1.DeleteOptions, err error) {
	data, err := r.body()
	if err != nil {
		return options, err
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &options); err != nil {
			return options, apierrors.NewBadRequest(err.Error())
		}
	}
	if policy := r.query.Get("propagationPolicy"); policy != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(policy))
	}
	if len(options.DryRun) > 0 {
		r.query.Set("dryRun", options.DryRun[0])
	}
	return options, nil
}

// delete removes an object, or marks it as deleted as long as it has finalizers.
func (s *Server) delete(w http.ResponseWriter, r *request) error {
	options, err := r.deleteOptions()
	if err != nil {
		return err
	}
	remaining, removed, err := s.writer.remove(w, r, options)
	if err != nil {
		return err
	}
	if remaining != nil {
		return s.respondObject(w, r, http.StatusOK, remaining)
	}
	return respond(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.key.Name, Group: r.of.Group, Kind: r.of.Resource, UID: removed.GetUID()},
	})
}

// remove deletes an object. It returns the object if it remains, and otherwise its last
// state.
func (p *writer) remove(w http.ResponseWriter, r *request, options metav1.DeleteOptions) (remaining, removed *unstructured.Unstructured, err error) {
	for range maxAttempts {
		stored := p.store.Get(r.of.Stored.GroupResource(), r.key)
		if stored == nil {
			return nil, nil, r.notFound()
		}
		if err := r.checkPreconditions(options.Preconditions, stored); err != nil {
			return nil, nil, err
		}
		old, err := p.convert(r, stored)
		if err != nil {
			return nil, nil, err
		}
		review := webhook.Review{
			Resource: r.of, Operation: admissionv1.Delete, Key: r.key, Old: old, DryRun: r.isDryRun(), Headers: w.Header(),
		}
		if _, err := p.hooks.Mutate(r.Context(), review); err != nil {
			return nil, nil, err
		}
		if err := p.hooks.Validate(r.Context(), review); err != nil {
			return nil, nil, err
		}
		remaining, err = p.removeStored(r, stored, options)
		if !errors.Is(err, store.ErrChanged) {
			return remaining, stored, err
		}
	}
	return nil, nil, r.conflict()
}

// removeStored deletes the state of an object that was read, and returns the object if it
// remains.
func (p *writer) removeStored(r *request, stored *unstructured.Unstructured, options metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	deleted := stored
	if stored.GetDeletionTimestamp() == nil {
		deleted = stored.DeepCopy()
		deletion := now()
		deleted.SetDeletionTimestamp(&deletion)
		deleted.SetDeletionGracePeriodSeconds(new(int64))
		if generation := deleted.GetGeneration(); generation > 0 {
			deleted.SetGeneration(generation + 1)
		}
	}
	deleted = withPropagation(deleted, options.PropagationPolicy)
	if deleted.GetKind() == "Namespace" && deleted.GetAPIVersion() == "v1" {
		_ = unstructured.SetNestedField(deleted.Object, "Terminating", "status", "phase") // the server has set the status
	}
	switch {
	case isFinished(deleted) && !r.isDryRun() && !p.catalog.hasInstances(r):
		_, err := p.commit(r, stored, nil)
		return nil, err
	case isFinished(deleted) && r.isDryRun():
		return nil, nil //nolint:nilnil // nothing remains
	case deleted == stored || r.isDryRun():
		return deleted, nil
	}
	remaining, err := p.commit(r, stored, deleted)
	if err == nil && r.of.Stored.GroupResource() == definitions {
		p.removeInstances(r.key.Name)
	}
	return remaining, err
}

// withPropagation adds the finalizer with which the garbage collector handles dependents.
func withPropagation(object *unstructured.Unstructured, policy *metav1.DeletionPropagation) *unstructured.Unstructured {
	var finalizer string
	switch {
	case policy == nil:
		return object
	case *policy == metav1.DeletePropagationOrphan:
		finalizer = metav1.FinalizerOrphanDependents
	case *policy == metav1.DeletePropagationForeground:
		finalizer = metav1.FinalizerDeleteDependents
	}
	if finalizer == "" || slices.Contains(object.GetFinalizers(), finalizer) {
		return object
	}
	object = object.DeepCopy()
	object.SetFinalizers(append(object.GetFinalizers(), finalizer))
	return object
}

// deleteCollection removes all selected objects, and answers with them.
func (s *Server) deleteCollection(w http.ResponseWriter, r *request) error {
	selected, err := s.selection(r)
	if err != nil {
		return err
	}
	options, err := r.deleteOptions()
	if err != nil {
		return err
	}
	objects, _, err := s.store.List(r.of.Stored.GroupResource(), 0)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !selected.matches(o) })
	for _, object := range objects {
		one := *r
		one.key.Namespace = object.GetNamespace()
		one.key.Name = object.GetName()
		if _, _, err := s.writer.remove(w, &one, options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	metadata := map[string]any{}
	selected.noteShards(r.of, metadata)
	return respond(w, http.StatusOK, view{}.list(r, objects, metadata))
}

// removeInstances deletes the objects of a deleted definition.
func (p *writer) removeInstances(name string) {
	served := p.catalog.defined(name)
	if len(served) == 0 {
		return
	}
	objects, _, err := p.store.List(served[0].Stored.GroupResource(), 0)
	if err != nil {
		return
	}
	for _, object := range objects {
		key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		r := &request{Request: &http.Request{}, of: served[0], key: key}
		_, _ = p.removeStored(r, object, metav1.DeleteOptions{}) // others may have deleted it
	}
}
