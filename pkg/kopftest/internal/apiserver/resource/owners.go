package resource

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// OwnersOf returns the owners of the fields of an object, which are the largest part of many objects.
// They are replaced as a whole, and never changed in place, so that objects can share them.
func OwnersOf(object *unstructured.Unstructured) []any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	owners, _ := metadata["managedFields"].([]any)
	return owners
}

// Copy returns a copy of an object that shares the owners of the fields.
func Copy(object *unstructured.Unstructured) *unstructured.Unstructured {
	rest := WithoutOwners(object).DeepCopy()
	if owners := OwnersOf(object); owners != nil {
		setOwners(rest, owners)
	}
	return rest
}

// WithoutOwners returns an object without the owners of its fields. It shares everything else.
func WithoutOwners(object *unstructured.Unstructured) *unstructured.Unstructured {
	rest := maps.Clone(object.Object)
	if metadata, ok := rest["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		rest["metadata"] = metadata
	}
	return &unstructured.Unstructured{Object: rest}
}

// Track returns an object with the owners of its fields, after a manager has changed the stored
// object to it. The stored object remains as it is.
func (r *Resource) Track(subresource string, stored, updated *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	live := newOwned(stored)
	changed := newOwned(updated)
	result, ok := r.FieldManager(subresource).UpdateNoErrors(live, changed, manager).(*owned)
	if !ok {
		return updated
	}
	setOwners(result.Unstructured, encodeOwners(result.owners, live.owners, OwnersOf(stored)))
	return result.Unstructured
}

// owned is an object whose field owners are decoded, and not in its content: the tracker reads and
// writes them several times.
type owned struct {
	*unstructured.Unstructured
	owners []metav1.ManagedFieldsEntry
}

// newOwned returns an object that shares everything but the metadata.
func newOwned(object *unstructured.Unstructured) *owned {
	return &owned{Unstructured: WithoutOwners(object), owners: decodeOwners(object)}
}

// GetManagedFields returns the field owners.
func (o *owned) GetManagedFields() []metav1.ManagedFieldsEntry { return o.owners }

// SetManagedFields replaces the field owners.
func (o *owned) SetManagedFields(owners []metav1.ManagedFieldsEntry) { o.owners = owners }

// DeepCopyObject returns a copy.
func (o *owned) DeepCopyObject() runtime.Object {
	return &owned{Unstructured: o.DeepCopy(), owners: o.owners}
}

// decodeOwners returns the field owners of an object. What the server itself has not written is
// left to the general decoder.
func decodeOwners(object *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	stored := OwnersOf(object)
	if len(stored) == 0 {
		return object.GetManagedFields()
	}
	owners := make([]metav1.ManagedFieldsEntry, 0, len(stored))
	for _, item := range stored {
		owner, ok := decodeOwner(item)
		if !ok {
			return object.GetManagedFields()
		}
		owners = append(owners, owner)
	}
	return owners
}

func decodeOwner(item any) (owner metav1.ManagedFieldsEntry, ok bool) {
	fields, ok := item.(map[string]any)
	for name, value := range fields {
		text, isText := value.(string)
		switch name {
		case "manager":
			owner.Manager = text
		case "operation":
			owner.Operation = metav1.ManagedFieldsOperationType(text)
		case "apiVersion":
			owner.APIVersion = text
		case "fieldsType":
			owner.FieldsType = text
		case "subresource":
			owner.Subresource = text
		case "time":
			at, err := time.Parse(time.RFC3339, text)
			owner.Time = &metav1.Time{Time: at.Local()}
			isText = isText && err == nil
		case "fieldsV1":
			raw, err := json.Marshal(value)
			owner.FieldsV1 = &metav1.FieldsV1{}
			owner.FieldsV1.SetRawBytes(raw)
			_, isText = value.(map[string]any)
			isText = isText && err == nil
		default:
			isText = false
		}
		ok = ok && isText
	}
	return owner, ok
}

// encodeOwners returns field owners as they are stored. It takes over the fields of those that are
// known already.
func encodeOwners(owners, known []metav1.ManagedFieldsEntry, stored []any) []any {
	if owners == nil {
		return nil
	}
	encoded := make([]any, 0, len(owners))
	for _, owner := range owners {
		one := map[string]any{}
		if owner.FieldsV1 != nil {
			one["fieldsV1"] = fieldsOf(owner, known, stored)
		}
		for name, text := range map[string]string{
			"manager": owner.Manager, "operation": string(owner.Operation), "apiVersion": owner.APIVersion,
			"fieldsType": owner.FieldsType, "subresource": owner.Subresource,
		} {
			if text != "" {
				one[name] = text
			}
		}
		if owner.Time != nil {
			one["time"] = owner.Time.UTC().Format(time.RFC3339)
		}
		encoded = append(encoded, one)
	}
	return encoded
}

// fieldsOf returns the fields of an owner.
func fieldsOf(owner metav1.ManagedFieldsEntry, known []metav1.ManagedFieldsEntry, stored []any) any {
	raw := owner.FieldsV1.GetRawBytes()
	for i := range min(len(known), len(stored)) {
		if entry, ok := stored[i].(map[string]any); ok && known[i].FieldsV1 != nil && bytes.Equal(known[i].FieldsV1.GetRawBytes(), raw) {
			return entry["fieldsV1"]
		}
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil // the tracker has encoded it
	}
	return fields
}

// setOwners replaces the field owners of an object.
func setOwners(object *unstructured.Unstructured, owners []any) {
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object.Object["metadata"] = metadata
	}
	delete(metadata, "managedFields")
	if owners != nil {
		metadata["managedFields"] = owners
	}
}
