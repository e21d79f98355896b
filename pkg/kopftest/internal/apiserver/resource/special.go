package resource

import (
	"encoding/base64"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// specialOf returns the peculiarities of a kind.
func specialOf(kind schema.GroupVersionKind) special {
	switch kind.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return special{create: prepareNamespace}
	case schema.GroupKind{Kind: "Secret"}:
		return special{decode: encodeSecret}
	case schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return special{create: func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"phase": "Pending"} }}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return special{decode: defaultDefinition, create: establish, validate: validateDefinition}
	}
	if kind.Group == "rbac.authorization.k8s.io" || kind.Kind == "Event" {
		return special{names: pathSegment}
	}
	return special{}
}

func prepareNamespace(created *unstructured.Unstructured) {
	created.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
	created.Object["status"] = map[string]any{"phase": "Active"}
	labels := created.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = created.GetName()
	created.SetLabels(labels)
}

// encodeSecret moves plain text into the encoded data.
func encodeSecret(content map[string]any) {
	if content["type"] == nil {
		content["type"] = "Opaque"
	}
	plain, ok := content["stringData"].(map[string]any)
	if !ok {
		return
	}
	data, ok := content["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
		content["data"] = data
	}
	for name, value := range plain {
		if text, ok := value.(string); ok {
			data[name] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	delete(content, "stringData")
}

// defaultDefinition adds the defaults of a custom resource definition.
func defaultDefinition(content map[string]any) {
	spec, _, _ := unstructured.NestedMap(content, "spec") // a copy; other types are mistakes that are found later
	names, ok := spec["names"].(map[string]any)
	if !ok {
		return
	}
	kind, _ := names["kind"].(string)
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if names[name] == nil {
			names[name] = value
		}
	}
	if spec["conversion"] == nil {
		spec["conversion"] = map[string]any{"strategy": "None"}
	}
	content["spec"] = spec
}

// establish marks a definition as served. The API server of Kubernetes does that a moment
// later.
func establish(created *unstructured.Unstructured) {
	definition, err := DefinitionOf(created)
	if err != nil {
		return
	}
	status := apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: definition.Spec.Names}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	for _, one := range []struct {
		kind    apiextensionsv1.CustomResourceDefinitionConditionType
		reason  string
		message string
	}{
		{apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found"},
		{apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted"},
	} {
		status.Conditions = append(status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: one.kind, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: now, Reason: one.reason, Message: one.message,
		})
	}
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			status.StoredVersions = append(status.StoredVersions, version.Name)
		}
	}
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status); err == nil {
		created.Object["status"] = content
	}
}

// DefinitionOf returns a custom resource definition as its Go type.
func DefinitionOf(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition)
}

func validateDefinition(object *unstructured.Unstructured) field.ErrorList {
	definition, err := DefinitionOf(object)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), nil, err.Error())}
	}
	if wanted := definition.Spec.Names.Plural + "." + definition.Spec.Group; definition.Name != wanted {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), definition.Name, "must be spec.names.plural+\".\"+spec.group")}
	}
	if _, err := Custom(definition); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "versions"), "", err.Error())}
	}
	return nil
}
