package resource

import (
	"context"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Status is the name of the subresource for the status.
const Status = "status"

// Resource is one version of a resource, as the server offers it.
type Resource struct {
	schema.GroupVersionResource
	Kind, Singular string
	Namespaced     bool
	ShortNames     []string
	Categories     []string
	Subresources   []string
	// HasScale reports whether a definition asks for the scale subresource, which is not served.
	HasScale bool
	// Terminating reports whether the definition is deleted, and waits for its objects: they can be
	// read, changed, and deleted, but not created.
	Terminating bool
	// SelectableFields are those by which clients can select custom objects, besides the
	// name and the namespace: "spec.color".
	SelectableFields []string
	// Stored is the version in which the objects are stored. Events have another group
	// there.
	Stored schema.GroupVersionResource
	// Conversion is the webhook that converts custom objects between versions. It is nil if only
	// their version changes.
	Conversion *apiextensionsv1.WebhookConversion
	Rules
}

// IsCustom reports whether a definition has added the resource.
func (r *Resource) IsCustom() bool { _, is := r.Rules.(*custom); return is }

// Rules are the differences between resources. They are safe for concurrent use.
type Rules interface {
	// Decode drops unknown fields of an object, adds defaults, and returns the unknown
	// fields.
	Decode(object *unstructured.Unstructured) (unknown []string, err error)
	// PrepareCreate sets the fields that the server determines.
	PrepareCreate(created *unstructured.Unstructured)
	// PrepareUpdate takes the fields that a write may not change from the stored object,
	// and counts the generation.
	PrepareUpdate(updated, stored *unstructured.Unstructured, subresource string)
	// Validate returns the mistakes in an object. Nothing is stored when it is created.
	Validate(ctx context.Context, object, stored *unstructured.Unstructured, subresource string) field.ErrorList
	// FieldManager tracks who owns the fields.
	FieldManager(subresource string) *managedfields.FieldManager
	// Convert changes a stored object into this version, without a webhook.
	Convert(stored *unstructured.Unstructured) *unstructured.Unstructured
	// Store changes an object of this version into the stored one, without a webhook.
	Store(object *unstructured.Unstructured) *unstructured.Unstructured
	// NeedsVersion reports whether updates must name the version that they replace.
	NeedsVersion() bool
	// CanMergeStrategically returns a value of the Go type for strategic merge patches, or
	// nil if the resource does not support them.
	StrategicType() any
}

// GroupVersionKind returns the kind of the objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// withVersion returns the object with another apiVersion.
func withVersion(object *unstructured.Unstructured, gv schema.GroupVersion) *unstructured.Unstructured {
	if object.GetAPIVersion() == gv.String() {
		return object
	}
	content := maps.Clone(object.Object)
	content["apiVersion"] = gv.String()
	return &unstructured.Unstructured{Object: content}
}
