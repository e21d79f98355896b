package resource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldManagers are the managers of an object and of its status.
type fieldManagers struct {
	object, status *managedfields.FieldManager
}

// newFieldManagers returns the managers of a kind. The status belongs to its subresource,
// if there is one.
func newFieldManagers(kind schema.GroupVersionKind, types managedfields.TypeConverter, hasStatus bool) (fieldManagers, error) {
	object, err := newFieldManager(kind, types, "", resetFields(hasStatus, "status"))
	if err != nil {
		return fieldManagers{}, err
	}
	status, err := newFieldManager(kind, types, Status, resetFields(hasStatus, "metadata", "spec"))
	return fieldManagers{object: object, status: status}, err
}

func resetFields(hasStatus bool, names ...string) *fieldpath.Set {
	reset := fieldpath.NewSet()
	for _, name := range names {
		if hasStatus {
			reset.Insert(fieldpath.MakePathOrDie(name))
		}
	}
	return reset
}

func newFieldManager(kind schema.GroupVersionKind, types managedfields.TypeConverter, subresource string, reset *fieldpath.Set) (*managedfields.FieldManager, error) {
	manager, err := managedfields.NewDefaultCRDFieldManager(
		types, converter{}, defaulter{}, creator{}, kind, kind.GroupVersion(), subresource,
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(reset)},
	)
	if err != nil {
		return nil, fmt.Errorf("the fields of %s cannot be tracked: %w", kind, err)
	}
	return manager, nil
}

// of returns the manager of a subresource, or of the object itself.
func (m fieldManagers) of(subresource string) *managedfields.FieldManager {
	if subresource == Status {
		return m.status
	}
	return m.object
}

// converter, defaulter, and creator work on unstructured objects.
type (
	converter struct{}
	defaulter struct{}
	creator   struct{}
)

// Convert is not used.
func (converter) Convert(_, _, _ any) error { return nil }

// ConvertToVersion changes the version only: objects have the same fields in all versions.
func (converter) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	if tracked, ok := in.(*owned); ok {
		in = tracked.Unstructured
	}
	object, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is not unstructured", in)
	}
	kind, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{object.GroupVersionKind()})
	if !ok {
		return object, nil
	}
	return withVersion(object, kind.GroupVersion()), nil
}

// ConvertFieldLabel is not used.
func (converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does nothing: the objects have their defaults already.
func (defaulter) Default(runtime.Object) {}

// New returns an empty object.
func (creator) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// objectMetaSchema is the schema of metadata, as far as merging needs it.
func objectMetaSchema() spec.Schema {
	text := spec.StringProperty
	list := func(items *spec.Schema, kind string) spec.Schema {
		made := *spec.ArrayProperty(items)
		made.AddExtension("x-kubernetes-list-type", kind)
		return made
	}
	open := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
	open.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	owner := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": *text(), "kind": *text(), "name": *text(), "uid": *text(),
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	}}}
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := list(&owner, "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: map[string]spec.Schema{
		"name": *text(), "generateName": *text(), "namespace": *text(), "selfLink": *text(), "uid": *text(), "resourceVersion": *text(),
		"generation": *spec.Int64Property(), "deletionGracePeriodSeconds": *spec.Int64Property(),
		"creationTimestamp": *text(), "deletionTimestamp": *text(),
		"labels": *spec.MapProperty(text()), "annotations": *spec.MapProperty(text()),
		"finalizers": list(text(), "set"), "ownerReferences": owners, "managedFields": list(&open, "atomic"),
	}}}
}
