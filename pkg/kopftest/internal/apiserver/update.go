package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/webhook"
)

// writer changes objects: checks, admission, field owners, and the store.
type writer struct {
	store   *store.Store
	catalog *catalog
	hooks   *webhook.Admission
}

// maxAttempts limits how often a write without a version is repeated after conflicts.
const maxAttempts = 5

// update replaces an object.
func (s *Server) update(w http.ResponseWriter, r *request) error {
	given, err := r.decode()
	if err != nil {
		return err
	}
	if given.GetName() != r.key.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", given.GetName(), r.key.Name))
	}
	if given.GetNamespace() == "" && r.key.Namespace != "" {
		given.SetNamespace(r.key.Namespace)
	}
	stored, err := s.writer.write(w, r, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if given.GetResourceVersion() == "" && r.of.NeedsVersion() {
			return nil, apierrors.NewInvalid(r.of.GroupVersionKind().GroupKind(), r.key.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
			})
		}
		if uid := given.GetUID(); uid != "" && uid != current.GetUID() {
			return nil, apierrors.NewConflict(r.of.GroupResource(), r.key.Name,
				fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, current.GetUID())) //nolint:staticcheck // as the real server
		}
		return resource.Copy(given), nil
	})
	if err != nil {
		return err
	}
	return s.respondObject(w, r, http.StatusOK, stored)
}

// write replaces an object by what the function makes of the current one, in the version of
// the request. The function must not modify that one. A write without a version is repeated after
// conflicts.
func (p *writer) write(w http.ResponseWriter, r *request, change func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	for range maxAttempts {
		stored := p.store.Get(r.of.Stored.GroupResource(), r.key)
		if stored == nil {
			return nil, r.notFound()
		}
		current, err := p.convert(r, stored)
		if err != nil {
			return nil, err
		}
		updated, err := change(current)
		if err != nil {
			return nil, err
		}
		shareOwners(updated, current)
		if version := updated.GetResourceVersion(); version != "" && version != "0" && version != current.GetResourceVersion() {
			return nil, r.conflict()
		}
		updated.SetResourceVersion(current.GetResourceVersion())
		result, err := p.replace(r.Context(), w, r, stored, current, updated)
		if !errors.Is(err, store.ErrChanged) {
			return result, err
		}
	}
	return nil, r.conflict()
}

func (r *request) conflict() error {
	return apierrors.NewConflict(r.of.GroupResource(), r.key.Name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// replace stores an object after all checks. Without a change, nothing is stored.
func (p *writer) replace(ctx context.Context, w http.ResponseWriter, r *request, stored, current, updated *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := r.coerce(w, updated, current); err != nil {
		return nil, err
	}
	r.of.PrepareUpdate(updated, current, r.subresource)
	review := webhook.Review{
		Resource: r.of, Operation: admissionv1.Update, Key: r.key, Subresource: r.subresource,
		Object: updated, Old: current, DryRun: r.isDryRun(), Headers: w.Header(),
	}
	updated, err := p.hooks.Mutate(ctx, review)
	if err != nil {
		return nil, err
	}
	if updated != review.Object {
		if err := r.coerce(w, updated, current); err != nil {
			return nil, err
		}
		r.of.PrepareUpdate(updated, current, r.subresource)
	}
	restore := detachOwners(updated, current)
	faults := r.of.Validate(ctx, updated, current, r.subresource)
	restore()
	if len(faults) > 0 {
		return nil, apierrors.NewInvalid(r.of.GroupVersionKind().GroupKind(), r.key.Name, faults)
	}
	if !r.isApply() {
		updated = r.of.Track(r.subresource, current, updated, r.manager())
	}
	review.Object = updated
	if err := p.hooks.Validate(ctx, review); err != nil {
		return nil, err
	}
	switch {
	case isUnchanged(current, updated) && !r.isMigrated(stored):
		return stored, nil
	case r.isDryRun():
		return p.asStored(r, updated)
	case isFinished(updated):
		if _, err := p.commit(r, stored, nil); err != nil {
			return nil, err
		}
		return p.asStored(r, updated)
	default:
		return p.commit(r, stored, updated)
	}
}

// convert returns a stored object in the version of the request.
func (p *writer) convert(r *request, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	converted, err := p.hooks.Convert(r.Context(), r.of, stored)
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

// asStored returns an object as it is stored.
func (p *writer) asStored(r *request, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return p.hooks.Store(r.Context(), r.of, p.catalog.find(r.of.Stored), object)
}

// isMigrated reports whether a write moves a custom object to the storage version, also if it changes nothing else.
func (r *request) isMigrated(stored *unstructured.Unstructured) bool {
	return r.of.IsCustom() && stored.GetAPIVersion() != r.of.Stored.GroupVersion().String()
}

// isUnchanged reports whether a write would change nothing but the times of field owners.
func isUnchanged(before, after *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(resource.WithoutOwners(before).Object, resource.WithoutOwners(after).Object) &&
		equality.Semantic.DeepEqual(ownersWithoutTimes(before), ownersWithoutTimes(after))
}

// isFinished reports whether nothing prevents a deleted object from going.
func isFinished(object *unstructured.Unstructured) bool {
	if object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	remaining, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers") // other types are none
	return object.GetKind() != "Namespace" || object.GetAPIVersion() != "v1" || len(remaining) == 0
}

// commit stores an object, or removes it without one. Definitions of custom resources take
// effect before their event is visible.
func (p *writer) commit(r *request, stored, updated *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if updated != nil {
		var err error
		updated, err = p.asStored(r, updated)
		if err != nil {
			return nil, err
		}
	}
	of := r.of.Stored.GroupResource()
	if of == definitions {
		return p.catalog.commitDefinition(r.key, stored, updated)
	}
	result, err := p.store.Commit(of, r.key, stored, updated)
	if err == nil && updated == nil && r.of.NeedsVersion() {
		p.catalog.finishDefinition(of)
	}
	return result, err
}

// preconditionError returns the answer to a deletion of another object.
func (r *request) preconditionError(kind, wanted, found string) error {
	return apierrors.NewConflict(r.of.GroupResource(), r.key.Name,
		fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", kind, wanted, kind, found)) //nolint:staticcheck // as the real server
}

// checkPreconditions compares an object with the preconditions of a deletion.
func (r *request) checkPreconditions(p *metav1.Preconditions, object *unstructured.Unstructured) error {
	switch {
	case p == nil:
		return nil
	case p.UID != nil && *p.UID != object.GetUID():
		return r.preconditionError("UID", string(*p.UID), string(object.GetUID()))
	case p.ResourceVersion != nil && *p.ResourceVersion != object.GetResourceVersion():
		return r.preconditionError("ResourceVersion", *p.ResourceVersion, object.GetResourceVersion())
	default:
		return nil
	}
}
