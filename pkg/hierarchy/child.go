package hierarchy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// child is one object, or a nested one, that is about to be changed. Only
// reading can fail, so that a list is changed as a whole or not at all.
type child interface {
	read() (metadata, error)
	write(before, after metadata)
	nested(path object.Path) (child, error) // nil if there is no such field
	String() string
}

func childOf(obj any) (child, error) {
	switch obj := obj.(type) {
	case map[string]any:
		return newMapping(obj)
	case *unstructured.Unstructured:
		if obj.Object == nil {
			obj.Object = map[string]any{}
		}
		return newMapping(obj.Object)
	case *object.Body, *object.Snapshot, object.View:
		return nil, fmt.Errorf("%T is a read-only view of an object in the cluster: change a copy of it (View().Map())", obj)
	case metav1.Object:
		return typed{obj}, nil
	}
	return nil, fmt.Errorf("%T is not supported: give a pointer to a typed object, "+
		"an *unstructured.Unstructured, a map[string]any, or a list of these", obj)
}

// typed is an object of a Go type.
type typed struct{ metav1.Object }

func (t typed) read() (metadata, error)      { return metadataOf(t.Object), nil }
func (t typed) write(before, after metadata) { after.store(t.Object, before) }

func (t typed) nested(path object.Path) (child, error) { return nestedInStruct(t.Object, path) }

func (t typed) String() string {
	return describe(fmt.Sprintf("%T", t.Object), t.GetNamespace(), t.GetName())
}

// mapping is an object in the form of a map.
type mapping struct {
	object map[string]any
	fields map[string]any // the metadata; part of the object once it is written
}

func newMapping(obj map[string]any) (mapping, error) {
	if fields, ok := obj["metadata"].(map[string]any); ok && fields != nil {
		return mapping{obj, fields}, nil
	}
	if isNil(obj["metadata"]) {
		return mapping{obj, map[string]any{}}, nil
	}
	normal, err := object.Normalize(obj["metadata"]) // a struct, or a map of strings
	if err != nil {
		return mapping{}, err
	}
	fields, ok := normal.(map[string]any)
	if !ok {
		return mapping{}, fmt.Errorf("its metadata must be a mapping, not %T", obj["metadata"])
	}
	return mapping{obj, fields}, nil
}

func (m mapping) read() (metadata, error) { return decodeMetadata(m.object) }

func (m mapping) write(before, after metadata) {
	after.store(&unstructured.Unstructured{Object: map[string]any{"metadata": m.fields}}, before)
	if len(m.fields) > 0 {
		m.object["metadata"] = m.fields
	}
}

func (m mapping) nested(path object.Path) (child, error) {
	value, found := object.Lookup(m.object, path)
	if !found {
		return nil, nil
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("its field %s must be a mapping to be labelled, not %T", path, value)
	}
	return newMapping(inner)
}

func (m mapping) String() string {
	meta, _ := decodeMetadata(m.object)
	kind, _ := m.object["kind"].(string)
	return describe(kind, meta.Namespace, meta.Name)
}
