package converge

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// driftOf returns the wanted fields that the operator does not own anymore.
func driftOf(u *unstructured.Unstructured, a applied, o Owner, manager string) []convergence.DriftedField {
	content, whole := a.content, a.content
	if len(a.accepted) > 0 {
		whole = a.mark(o, false, nil).content
	}
	entries := u.GetManagedFields()
	var owned fieldSet
	if entry := entryOf(entries, manager); entry != nil {
		owned = parseFields(entry.FieldsV1.GetRawBytes())
	}
	all := make([]fieldSet, len(entries))
	for i, entry := range entries {
		all[i] = parseFields(entry.FieldsV1.GetRawBytes())
	}
	fields := []convergence.DriftedField{}
	for _, p := range owned.uncovered(without(content, unownedFields(u.Object, entriesOf(u))), all...) {
		by, owned := lastOwner(entries, all, p, manager)
		field := convergence.DriftedField{Path: owned.String(), Wanted: object.NewValue(owned.wanted(content, whole)), Found: object.NewValue(owned.found(u.Object))}
		if slices.ContainsFunc(fields, func(other convergence.DriftedField) bool { return other.Path == field.Path }) {
			continue // another part of what the other manager owns as a whole
		}
		if by != nil {
			field.Manager = by.Manager
			if by.Time != nil {
				field.Since = by.Time.Time
			}
		}
		fields = append(fields, field)
	}
	return fields
}

// lastOwner returns the entry of the manager, except one, that has written a field last, and the
// field as that manager owns it: possibly as a part of something larger. All are the fields of the entries.
func lastOwner(entries []metav1.ManagedFieldsEntry, all []fieldSet, p path, except string) (last *metav1.ManagedFieldsEntry, as path) {
	as = p
	for i := range entries {
		entry := &entries[i]
		if entry.Manager == except && entry.Operation == metav1.ManagedFieldsOperationApply || all[i] == nil {
			continue
		}
		owned, found := all[i].owned(p)
		if found && (last == nil || last.Time.Before(entry.Time)) {
			last = entry
			as = owned
		}
	}
	return last, as
}

// isOwnMark reports whether a field is one of those that the operator adds to children. They are
// restored without a question, because without them there is no child.
func isOwnMark(f convergence.DriftedField) bool {
	return f.Path == markPath("labels", convergence.OwnerLabel) || f.Path == markPath("annotations", convergence.MarksAnnotation) ||
		len(f.Path) >= len(references) && f.Path[:len(references)] == references
}

const references = "metadata.ownerReferences"

func markPath(of, key string) string {
	return path{{field: "metadata"}, {field: of}, {field: key}}.String()
}

// restore asks what becomes of the changes of others, and applies the child. It returns nil if
// that was deleted or replaced.
func (r *run) restore(ctx context.Context, a applied, live *fact, why action) (*fact, error) {
	var drift []convergence.DriftedField
	complete := false
	if r.Drift != nil {
		u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name)
		if apierrors.IsNotFound(err) || err == nil && u.GetUID() != live.uid {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		a, drift, complete, err = r.resolve(ctx, a, u, why)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case why == restore && complete:
		why = accept
	case why == restore && r.noteRestoration(r.state, a.Key):
		r.reportFight(a.Key, convergence.Fields(r.withDrift(ctx, a, drift)))
	}
	return r.apply(ctx, a, live, why)
}

// withDrift returns the drift, which it finds out if no handler decides about it.
func (r *run) withDrift(ctx context.Context, a applied, drift []convergence.DriftedField) []convergence.DriftedField {
	if drift == nil {
		if u, err := r.api.Get(ctx, a.resource, a.Namespace, a.Name); err == nil {
			drift = driftOf(u, a, r.Owner, r.Manager)
		}
	}
	return drift
}

// resolve asks what becomes of the changes of others, and returns what must be applied then.
// Complete is set if all changes are accepted.
func (r *run) resolve(ctx context.Context, a applied, u *unstructured.Unstructured, why action) (resolved applied, drift []convergence.DriftedField, complete bool, err error) {
	drift = driftOf(u, a, r.Owner, r.Manager)
	a.version = u.GetResourceVersion()
	asked := slices.DeleteFunc(slices.Clone(drift), func(f convergence.DriftedField) bool {
		return isOwnMark(f) || why == apply && !r.decisions.isFailing(a.Key, f)
	})
	if len(asked) == 0 {
		return a, drift, false, nil
	}
	resolution, err := r.Drift(ctx, a.resource, convergence.Drift{Child: a.Key, Live: object.NewBody(u.Object), Fields: asked})
	r.decisions.noteFields(a.Key, asked, err)
	if err != nil {
		return a, drift, false, err
	}
	fields, complete := a.accepted.with(resolution, asked)
	if len(fields) == len(a.accepted) {
		return a, drift, false, nil
	}
	r.Log.Info("Changes of a child by others are accepted.", "child", a.Key.String(), "fields", convergence.Fields(acceptedOf(resolution, asked)))
	resolved = a.mark(r.Owner, isKept(u.GetAnnotations()), fields)
	resolved.version = a.version
	return resolved, drift, complete && len(asked) == len(drift), nil
}

// askAboutDeletion asks before a child is created again that another client has deleted.
func (r *run) askAboutDeletion(ctx context.Context, ch *child) error {
	if r.Drift == nil || !r.decisions.mustAsk(ch.Key) {
		return nil
	}
	_, err := r.api.Get(ctx, ch.resource, ch.Namespace, ch.Name)
	switch {
	case err == nil:
		return nil // it has only lost its label; that is found out when it cannot be created
	case !apierrors.IsNotFound(err):
		return err
	}
	if _, err := r.Drift(ctx, ch.resource, convergence.Drift{Child: ch.Key}); err != nil {
		return err
	}
	r.decisions.noteDecision(ch.Key)
	return nil
}

func acceptedOf(r convergence.Resolution, drift []convergence.DriftedField) []convergence.DriftedField {
	return slices.DeleteFunc(slices.Clone(drift), func(f convergence.DriftedField) bool { return !r.Accepts(f.Path) })
}
