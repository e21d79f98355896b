package resource

import (
	"context"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	kinds "github.com/kopf-go/kopf/internal/builtin"
)

// builtin are the rules of a resource whose Go type is known.
type builtin struct {
	kind          schema.GroupVersionKind
	scheme        *runtime.Scheme
	namespaced    bool
	hasStatus     bool
	hasGeneration bool
	managers      fieldManagers
	special
}

// special are the peculiarities of single resources. All functions can be nil.
type special struct {
	decode   func(map[string]any)
	create   func(*unstructured.Unstructured)
	validate func(*unstructured.Unstructured) field.ErrorList
	names    validation.ValidateNameFunc
}

// Builtin returns the resources that every cluster has. They have no state.
func Builtin() ([]*Resource, error) { return loadBuiltin() }

var loadBuiltin = sync.OnceValues(newBuiltin)

func newBuiltin() ([]*Resource, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	types := typesOf{applyconfigurations.NewTypeConverter(scheme), managedfields.NewDeducedTypeConverter()}
	var made []*Resource
	for _, row := range kinds.Resources() {
		one, err := newBuiltinResource(row, scheme, types)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return made, nil
}

func newBuiltinResource(r kinds.Resource, scheme *runtime.Scheme, types managedfields.TypeConverter) (*Resource, error) {
	kind := r.Version.WithKind(r.Kind)
	hasStatus := slices.Contains(r.Subresources, Status)
	managers, err := newFieldManagers(kind, types, hasStatus)
	if err != nil {
		return nil, err
	}
	rules := &builtin{
		kind: kind, scheme: scheme, namespaced: r.Namespaced, hasStatus: hasStatus,
		hasGeneration: r.HasGeneration, managers: managers, special: specialOf(kind),
	}
	one := &Resource{
		GroupVersionResource: r.Version.WithResource(r.Plural), Kind: r.Kind, Singular: strings.ToLower(r.Kind),
		Namespaced: r.Namespaced, ShortNames: r.ShortNames, Categories: r.Categories, Subresources: r.Subresources,
		Stored: r.Version.WithResource(r.Plural), Rules: rules,
	}
	if kind.Group == eventsGroup {
		one.Stored = schema.GroupVersionResource{Version: "v1", Resource: r.Plural}
		one.Rules = renamedEvents{rules}
	}
	return one, nil
}

// Decode keeps the fields of the Go type.
func (b *builtin) Decode(object *unstructured.Unstructured) ([]string, error) {
	typed, err := b.scheme.New(b.kind)
	if err != nil {
		return nil, err
	}
	if b.decode != nil {
		b.decode(object.Object)
	}
	var unknown []string
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, err
		}
		for _, fault := range strict.Errors() {
			unknown = append(unknown, fault.Error())
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	dropNulls(content)
	object.Object = content
	object.SetGroupVersionKind(b.kind)
	return unknown, nil
}

// dropNulls removes fields without a value, which Go types have in JSON.
func dropNulls(content map[string]any) {
	for name, value := range content {
		switch value := value.(type) {
		case nil:
			delete(content, name)
		case map[string]any:
			dropNulls(value)
		}
	}
}

// PrepareCreate drops a status that has its own subresource, and starts the generations.
func (b *builtin) PrepareCreate(created *unstructured.Unstructured) {
	if b.hasStatus {
		created.Object["status"] = map[string]any{}
	}
	if b.hasGeneration {
		created.SetGeneration(1)
	}
	if b.create != nil {
		b.create(created)
	}
}

// PrepareUpdate restricts a write to its part of the object.
func (b *builtin) PrepareUpdate(updated, stored *unstructured.Unstructured, subresource string) {
	keepServerFields(updated, stored)
	switch {
	case subresource == Status:
		for name := range without(updated.Object, []string{"status", "kind"}) {
			keepField(updated, stored, name)
		}
		for name := range without(stored.Object, []string{"status", "kind"}) {
			keepField(updated, stored, name)
		}
	case b.hasStatus:
		keepField(updated, stored, "status")
	}
	if b.hasGeneration && hasChanged(updated, stored, "status") {
		updated.SetGeneration(stored.GetGeneration() + 1)
	}
}

// Validate checks the metadata only.
func (b *builtin) Validate(_ context.Context, object, stored *unstructured.Unstructured, _ string) field.ErrorList {
	names := validation.ValidateNameFunc(validation.NameIsDNSSubdomain)
	if b.names != nil {
		names = b.names
	}
	faults := validateMetadata(object, stored, b.namespaced, names)
	if b.validate != nil {
		faults = append(faults, b.validate(object)...)
	}
	return faults
}

// FieldManager returns the tracker of field owners.
func (b *builtin) FieldManager(subresource string) *managedfields.FieldManager {
	return b.managers.of(subresource)
}

// Convert returns the object itself: there is only one version.
func (b *builtin) Convert(stored *unstructured.Unstructured) *unstructured.Unstructured {
	return stored
}

// Store returns the object itself: there is only one version.
func (b *builtin) Store(object *unstructured.Unstructured) *unstructured.Unstructured { return object }

// NeedsVersion is false: most built-in resources can be replaced unconditionally.
func (b *builtin) NeedsVersion() bool { return false }

// StrategicType returns a value of the Go type.
func (b *builtin) StrategicType() any {
	typed, err := b.scheme.New(b.kind)
	if err != nil {
		return nil
	}
	return typed
}

// typesOf finds the types of all kinds, also of those without apply configurations.
type typesOf [2]managedfields.TypeConverter

// pathSegment accepts the names of roles.
func pathSegment(name string, _ bool) []string {
	if name == "." || name == ".." || strings.ContainsAny(name, "/%") {
		return []string{"must be a segment of a path"}
	}
	return nil
}
