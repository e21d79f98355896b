package hierarchy

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// target is an object, or a nested one, that is about to be changed. Writing
// cannot fail, so that a list is changed as a whole or not at all.
type target struct {
	name  string // in messages
	after metav1.ObjectMeta
	write func(after metav1.ObjectMeta)
}

func (t *target) String() string { return t.name }

func (t *target) change(edits []edit) error {
	for _, edit := range edits {
		if err := edit(&t.after); err != nil {
			return err
		}
	}
	return nil
}

func newTarget(obj any) (*target, error) {
	switch obj := obj.(type) {
	case map[string]any:
		return mapTarget(obj)
	case *unstructured.Unstructured:
		if obj.Object == nil {
			obj.Object = map[string]any{}
		}
		return mapTarget(obj.Object)
	case *object.Body, *object.Snapshot, object.View:
		return nil, fmt.Errorf("%T is a read-only view of an object in the cluster: change a copy of it (View().Map())", obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("%T is not supported: give a pointer to a typed object, "+
			"an *unstructured.Unstructured, a map[string]any, or a list of these", obj)
	}
	before := metadataOf(accessor)
	return &target{
		name:  describe(fmt.Sprintf("%T", obj), before.Namespace, before.Name),
		after: before,
		write: func(after metav1.ObjectMeta) { setChanged(accessor, before, after) },
	}, nil
}

func mapTarget(obj map[string]any) (*target, error) {
	fields, before, err := decodeMetadata(obj)
	if err != nil {
		return nil, err
	}
	kind, _ := obj["kind"].(string)
	return &target{
		name:  describe(kind, before.Namespace, before.Name),
		after: before,
		write: func(after metav1.ObjectMeta) {
			if equality.Semantic.DeepEqual(before, after) {
				return
			}
			if existing, _ := obj["metadata"].(map[string]any); existing == nil {
				obj["metadata"] = fields
			}
			setChanged(&unstructured.Unstructured{Object: obj}, before, after)
		},
	}, nil
}

// decodeMetadata reads the metadata of an object in the form of a map, as decoded
// JSON and as a struct. People write such maps by hand, so labels may well be a
// map[string]string, and owner references be Go structs.
func decodeMetadata(obj map[string]any) (map[string]any, metav1.ObjectMeta, error) {
	normalized, err := object.Normalize(obj["metadata"])
	if err != nil {
		return nil, metav1.ObjectMeta{}, err
	}
	fields, ok := normalized.(map[string]any)
	switch {
	case normalized == nil:
		fields = map[string]any{}
	case !ok:
		return nil, metav1.ObjectMeta{}, fmt.Errorf("its metadata must be a mapping, not %T", obj["metadata"])
	}
	var decoded metav1.PartialObjectMetadata
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": fields}, &decoded)
	if err != nil {
		return nil, metav1.ObjectMeta{}, fmt.Errorf("its metadata cannot be read: %w", err)
	}
	return fields, decoded.ObjectMeta, nil
}

// metadataOf returns the fields that this package works on.
func metadataOf(obj metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		Labels: obj.GetLabels(), OwnerReferences: obj.GetOwnerReferences(),
	}
}

// setChanged writes the fields that differ.
func setChanged(obj metav1.Object, before, after metav1.ObjectMeta) {
	if after.Name != before.Name {
		obj.SetName(after.Name)
	}
	if after.GenerateName != before.GenerateName {
		obj.SetGenerateName(after.GenerateName)
	}
	if after.Namespace != before.Namespace {
		obj.SetNamespace(after.Namespace)
	}
	if !maps.Equal(after.Labels, before.Labels) {
		obj.SetLabels(after.Labels)
	}
	if !reflect.DeepEqual(after.OwnerReferences, before.OwnerReferences) {
		obj.SetOwnerReferences(after.OwnerReferences)
	}
}
