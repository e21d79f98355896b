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

// factOf reads an object, with its managedFields.
func (c *Converger) factOf(u *unstructured.Unstructured) *fact {
	return readFact(u, c.Manager, c.FormerManagers...)
}

// inherit prepares a child that the operator has applied under a former name. It keeps its label.
// Again is set if the operator has applied it under its own name, too.
func (r *run) inherit(ctx context.Context, ch *child, live *fact, again bool) (*fact, error) {
	ch.label = ""
	if live == nil || !slices.Contains(r.hashes, live.owner) {
		return live, nil
	}
	if live.owner != r.hashes[0] {
		ch.label = live.owner
	}
	if !live.former || live.deleting {
		return live, nil
	}
	now, err := takeOver(ctx, r, ch, live, again)
	if now == nil {
		ch.label = "" // it is created again if it is gone; otherwise, that shows how it is now
	}
	return now, err
}

// takeOver moves the fields that the operator has applied under its former names to its name, so
// that it can remove them. It returns nil if the child was deleted, or has changed meanwhile.
// Again is set if that was done before: an operator with a former name is still running.
func takeOver(ctx context.Context, r *run, ch *child, live *fact, again bool) (*fact, error) {
	u, err := r.api.Get(ctx, ch.resource, ch.Namespace, ch.Name)
	if apierrors.IsNotFound(err) || err == nil && u.GetUID() != live.uid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	patch, err := renamed(u, r.FormerManagers, r.Manager)
	if err != nil {
		return nil, err
	}
	if patch == nil {
		return r.factOf(u), nil
	}
	if again && r.noteRestoration(r.state, ch.Key) {
		r.Log.Info("An operator with a former name of this one keeps applying a child. Stop it.", "child", ch.Key.String(), "names", r.FormerManagers)
	}
	u, err = r.api.Rename(ctx, ch.resource, ch.Key, patch)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.Log.Info("The fields of the child that were applied under a former name of the operator are taken over.", "child", ch.Key.String(), "manager", r.Manager)
	return r.factOf(u), nil
}

// renamed returns a JSON patch that moves what managers have applied to another one, or nil if
// there is nothing to move. What they have updated is not a part of what they have applied.
func renamed(u *unstructured.Unstructured, formers []string, manager string) ([]byte, error) {
	entries := u.GetManagedFields()
	isShared := entryOf(entries, manager) != nil
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
	if err != nil || !isShared {
		return patch, err
	}
	return withoutWanted(u, patch)
}

// withoutWanted adds to a patch that the child must be applied next, also by another process: the
// operator has applied it under both names, and now owns fields that it does not want.
func withoutWanted(u *unstructured.Unstructured, patch []byte) ([]byte, error) {
	text, found := u.GetAnnotations()[convergence.MarksAnnotation]
	if !found {
		return patch, nil // it is applied anyway
	}
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
