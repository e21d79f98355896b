// Package managedfields reads the metadata.managedFields of objects.
package managedfields

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// LastWriter returns the entry of the manager that wrote one of the fields last,
// or nil if no manager owns any of them. Entries that are also in before lose to
// all others: times have a resolution of one second, and names do not tell apart
// two processes of one program.
func LastWriter(entries, before []metav1.ManagedFieldsEntry, fields ...object.Path) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	lastIsNew := false
	for i := range entries {
		entry := &entries[i]
		if !owns(entry, fields) {
			continue
		}
		isNew := !slices.ContainsFunc(before, func(b metav1.ManagedFieldsEntry) bool { return isSameWrite(entry, &b) })
		if last == nil || isNew && !lastIsNew || isNew == lastIsNew && isLater(entry, last) {
			last = entry
			lastIsNew = isNew
		}
	}
	return last
}

// isLater reports whether a was written after b, or in the same second.
func isLater(a, b *metav1.ManagedFieldsEntry) bool {
	return b.Time == nil || a.Time != nil && !a.Time.Before(b.Time)
}

func isSameWrite(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Time.Equal(b.Time)
}

// owns reports whether one of the fields belongs to the manager.
func owns(manager *metav1.ManagedFieldsEntry, fields []object.Path) bool {
	var owned map[string]any
	if manager.FieldsV1 == nil || json.Unmarshal(manager.FieldsV1.GetRawBytes(), &owned) != nil {
		return false
	}
	return slices.ContainsFunc(fields, func(field object.Path) bool {
		path := make(object.Path, 0, len(field))
		for _, key := range field {
			path = append(path, "f:"+key)
		}
		_, found := object.Lookup(owned, path)
		return found
	})
}
