package converge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// takeOver moves the fields that the operator has applied under its former names to its name, so
// that it can remove them. It returns the view of the child after that.
func (r *run) takeOver(ctx context.Context, ch *child, v view) (view, error) {
	patch, err := renamed(v.object, r.formers, r.manager)
	if err != nil {
		return v, err
	}
	if v.known != nil && r.memory.countRestoration(ch.Key) {
		r.call.Log.Info("An operator with a former name of this one keeps applying a child. Stop it.", "child", ch.Key.String(), "names", r.formers)
	}
	u, err := r.api.Rename(ctx, ch.resource, ch.Key, patch)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return v, errChanged
	case err != nil:
		return v, err
	}
	r.call.Log.Info("The fields of the child that were applied under a former name of the operator are taken over.", "child", ch.Key.String(), "manager", r.manager)
	v.live = r.fact(u)
	v.object = u
	return v, nil
}

// renamed returns a JSON patch that moves what managers have applied to another one, or nil if
// there is nothing to move. What they have updated is not a part of what they have applied.
func renamed(u *unstructured.Unstructured, formers []string, manager string) ([]byte, error) {
	entries := u.GetManagedFields()
	isShared := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return isOurs(entry, manager) })
	upgraded := sets.New[string]()
	for i := range entries {
		entry := &entries[i]
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || !slices.Contains(formers, entry.Manager) {
			continue
		}
		// The upgrade moves updates. The name is one that no manager can have, so it finds no others.
		entry.Manager = "applied by\n" + entry.Manager
		entry.Operation = metav1.ManagedFieldsOperationUpdate
		upgraded.Insert(entry.Manager)
	}
	if len(upgraded) == 0 {
		return nil, nil
	}
	u.SetManagedFields(entries)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, upgraded, manager)
	text, hasMarks := u.GetAnnotations()[convergence.MarksAnnotation]
	if err != nil || !isShared || !hasMarks { // without marks, the child is applied anyway
		return patch, err
	}
	// The operator has applied the child under both names, and now owns fields that it does not want. The
	// mark makes it apply the child next, also in another process.
	a := readAnnotation(text)
	a.Wanted = "unknown"
	var operations []any
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, err
	}
	return json.Marshal(append(operations, map[string]any{
		"op": "replace", "path": "/metadata/annotations/" + strings.ReplaceAll(convergence.MarksAnnotation, "/", "~1"), "value": a.text(),
	}))
}
