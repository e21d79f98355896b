package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// custom are the rules of one version of a custom resource.
type custom struct {
	version    schema.GroupVersion
	stored     schema.GroupVersion
	namespaced bool
	hasStatus  bool
	schema     *structuralschema.Structural
	validator  schemavalidation.SchemaValidator
	status     schemavalidation.SchemaValidator // nil without a schema of the status
	rules      *cel.Validator                   // nil without rules
	managers   fieldManagers
}

// newCustomResources returns the served versions of a custom resource.
func newCustomResources(definition *apiextensionsv1.CustomResourceDefinition) ([]*Resource, error) {
	var made []*Resource
	names := definition.Spec.Names
	group := definition.Spec.Group
	stored := schema.GroupVersionResource{Group: group, Resource: names.Plural}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			stored.Version = version.Name
		}
	}
	var conversion *apiextensionsv1.WebhookConversion
	if c := definition.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil && c.Webhook.ClientConfig != nil {
		conversion = c.Webhook
	}
	rules := map[string]*custom{}
	models := map[string]*spec.Schema{}
	for _, version := range definition.Spec.Versions {
		one, err := newCustom(definition, version, stored.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("the definition %s cannot be served in version %s: %w", definition.Name, version.Name, err)
		}
		rules[version.Name] = one
		models[version.Name] = one.model(names.Kind)
	}
	types, err := managedfields.NewTypeConverter(models, false) // of all versions, because field owners name them
	if err != nil {
		return nil, err
	}
	for _, version := range definition.Spec.Versions {
		rules := rules[version.Name]
		rules.managers, err = newFieldManagers(rules.version.WithKind(names.Kind), types, rules.hasStatus)
		if err != nil {
			return nil, err
		}
		var selectable []string
		for _, one := range version.SelectableFields {
			selectable = append(selectable, strings.TrimPrefix(one.JSONPath, "."))
		}
		if version.Served {
			made = append(made, &Resource{
				GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version.Name, Resource: names.Plural},
				Kind:                 names.Kind, Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
				Namespaced: rules.namespaced, Subresources: subresourcesOf(version), Stored: stored, Rules: rules, Conversion: conversion,
				SelectableFields: selectable, HasScale: version.Subresources != nil && version.Subresources.Scale != nil,
			})
		}
	}
	return made, nil
}

func subresourcesOf(version apiextensionsv1.CustomResourceDefinitionVersion) []string {
	if version.Subresources == nil || version.Subresources.Status == nil {
		return nil
	}
	return []string{Status}
}

func newCustom(definition *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion, stored schema.GroupVersion) (*custom, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("it has no schema")
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	structure, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	if faults := structuralschema.ValidateStructural(field.NewPath("schema"), structure); len(faults) > 0 {
		return nil, faults.ToAggregate()
	}
	structure = structure.DeepCopy()
	if err := defaulting.PruneDefaults(structure); err != nil {
		return nil, err
	}
	c := &custom{
		version: schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}, stored: stored,
		namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		hasStatus:  len(subresourcesOf(version)) > 0, schema: structure,
		rules: cel.NewValidator(structure, true, celconfig.PerCallLimit),
	}
	c.validator, _, err = schemavalidation.NewSchemaValidator(internal)
	if err != nil {
		return nil, err
	}
	if status, ok := internal.Properties["status"]; ok {
		c.status, _, err = schemavalidation.NewSchemaValidator(&status)
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// model returns the schema for merging objects.
func (c *custom) model(kind string) *spec.Schema {
	model := c.schema.ToKubeOpenAPI()
	if model.Properties == nil {
		model.Properties = map[string]spec.Schema{}
	}
	model.Properties["apiVersion"] = *spec.StringProperty()
	model.Properties["kind"] = *spec.StringProperty()
	model.Properties["metadata"] = objectMetaSchema()
	model.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": c.version.Group, "version": c.version.Version, "kind": kind},
	})
	return model
}

// Decode prunes and defaults an object, as the API server does before anything else.
func (c *custom) Decode(object *unstructured.Unstructured) ([]string, error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	fault, more := objectmeta.CoerceWithOptions(nil, object.Object, c.schema, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fault != nil {
		return nil, fault
	}
	unknown = append(unknown, more...)
	unknown = append(unknown, pruning.PruneWithOptions(object.Object, c.schema, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, c.schema)
	defaulting.Default(object.Object, c.schema)
	if found {
		err = objectmeta.SetObjectMeta(object.Object, meta)
	}
	return unknown, err
}

// PrepareCreate drops a status that has its own subresource, and starts the generations.
func (c *custom) PrepareCreate(created *unstructured.Unstructured) {
	if c.hasStatus {
		delete(created.Object, "status")
	}
	created.SetGeneration(1)
}

// PrepareUpdate restricts a write to its part of the object. Every change besides metadata
// and a separate status makes a new generation.
func (c *custom) PrepareUpdate(updated, stored *unstructured.Unstructured, subresource string) {
	if subresource == Status {
		status, has := updated.Object["status"]
		owners := OwnersOf(updated)
		version := updated.GetResourceVersion()
		updated.Object = Copy(stored).Object
		setOwners(updated, owners)
		if version != "" {
			updated.SetResourceVersion(version)
		}
		delete(updated.Object, "status")
		if has {
			updated.Object["status"] = status
		}
		return
	}
	keepServerFields(updated, stored)
	if c.hasStatus {
		keepField(updated, stored, "status")
	}
	if hasChanged(updated, stored) {
		updated.SetGeneration(stored.GetGeneration() + 1)
	}
}

// Validate checks the metadata, the schema, and the rules. Mistakes that were stored before
// are tolerated where the API server tolerates them.
func (c *custom) Validate(ctx context.Context, object, stored *unstructured.Unstructured, subresource string) field.ErrorList {
	faults := validateMetadata(object, stored, c.namespaced, validation.NameIsDNSSubdomain)
	var before map[string]any
	switch {
	case subresource == Status && c.status != nil:
		faults = append(faults, schemavalidation.ValidateCustomResourceUpdate(field.NewPath("status"), object.Object["status"], stored.Object["status"], c.status)...)
		before = stored.Object
	case stored == nil:
		faults = append(faults, schemavalidation.ValidateCustomResource(nil, object.Object, c.validator)...)
	default:
		faults = append(faults, schemavalidation.ValidateCustomResourceUpdate(nil, object.Object, stored.Object, c.validator)...)
		before = stored.Object
	}
	faults = append(faults, objectmeta.Validate(ctx, nil, object.Object, c.schema, false)...)
	if before == nil || len(listtype.ValidateListSetsAndMaps(nil, c.schema, before)) == 0 {
		faults = append(faults, listtype.ValidateListSetsAndMaps(nil, c.schema, object.Object)...)
	}
	if c.rules == nil || len(faults) > 0 {
		return faults
	}
	var old any
	if before != nil {
		old = before
	}
	broken, _ := c.rules.Validate(ctx, nil, c.schema, object.Object, old, celconfig.RuntimeCELCostBudget)
	return append(faults, broken...)
}

// FieldManager returns the tracker of field owners.
func (c *custom) FieldManager(subresource string) *managedfields.FieldManager {
	return c.managers.of(subresource)
}

// Convert changes the version.
func (c *custom) Convert(stored *unstructured.Unstructured) *unstructured.Unstructured {
	if stored.GetAPIVersion() == c.version.String() {
		return stored
	}
	object := Copy(withVersion(stored, c.version))
	if _, err := c.Decode(object); err != nil {
		return stored
	}
	return object
}

// Store changes the version to the one of the storage. It adds the defaults of fields that were
// dropped: the API server does so whenever it reads an object.
func (c *custom) Store(object *unstructured.Unstructured) *unstructured.Unstructured {
	stored := Copy(object)
	defaulting.Default(stored.Object, c.schema)
	return withVersion(stored, c.stored)
}

// NeedsVersion is true: custom resources cannot be replaced unconditionally.
func (c *custom) NeedsVersion() bool { return true }

// StrategicType is nil: custom resources have no strategic merge patches.
func (c *custom) StrategicType() any { return nil }
