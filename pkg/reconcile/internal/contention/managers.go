package contention

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Culprit is the entry of whoever has written one of the fields last; nil if nobody
// is known to have. It is to be looked for before the fields are restored.
func Culprit(managers []metav1.ManagedFieldsEntry, fields []object.Path) *metav1.ManagedFieldsEntry {
	var last *metav1.ManagedFieldsEntry
	for i, manager := range managers {
		later := last == nil || manager.Time != nil && last.Time.Before(manager.Time)
		if later && owns(manager, fields) {
			last = &managers[i]
		}
	}
	return last
}

// owns tells whether one of the fields belongs to the manager.
func owns(manager metav1.ManagedFieldsEntry, fields []object.Path) bool {
	var owned map[string]any
	if manager.FieldsV1 == nil || json.Unmarshal(manager.FieldsV1.GetRawBytes(), &owned) != nil {
		return false
	}
	for _, field := range fields {
		path := make(object.Path, 0, len(field))
		for _, key := range field {
			path = append(path, "f:"+key)
		}
		if _, found := object.Lookup(owned, path); found {
			return true
		}
	}
	return false
}
