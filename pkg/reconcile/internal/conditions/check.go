package conditions

import (
	"fmt"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Check returns an error if the objects of a resource cannot have the conditions. Without a
// definition, it is not a custom resource.
func Check(of selector.Resource, definition map[string]any) error {
	if definition == nil {
		return fmt.Errorf("%s is not a custom resource, and its conditions belong to Kubernetes: remove kopf.Conditions for it", of)
	}
	if err := CheckStatus(of); err != nil {
		return err
	}
	if missing := missingFields(schemaOf(definition, of.Version)); len(missing) > 0 {
		return fmt.Errorf("the schema of %s does not have the fields %s, so they would be lost: add them to the version %s of its CustomResourceDefinition, or remove kopf.Conditions",
			of, strings.Join(missing, ", "), of.Version)
	}
	return nil
}

// CheckStatus returns an error if a resource has no status subresource: each write of the conditions
// would be another generation, so they would never be about the current one.
func CheckStatus(of selector.Resource) error {
	if of.Status {
		return nil
	}
	return fmt.Errorf("%s has no status subresource: add \"subresources: {status: {}}\" to the version %s of its CustomResourceDefinition, or remove kopf.Conditions", of, of.Version)
}

// schemaOf returns the schema of a version.
func schemaOf(definition map[string]any, version string) map[string]any {
	found, _ := object.Lookup(definition, object.Path{"spec", "versions"})
	versions, _ := found.([]any)
	for _, item := range versions {
		if named, _ := item.(map[string]any); named["name"] == version {
			schema, _ := object.Lookup(named, object.Path{"schema", "openAPIV3Schema"})
			return mapping(schema)
		}
	}
	return nil
}

// fields are those of the conditions, from the outermost ones.
var fields = []string{
	"status.observedGeneration",
	"status.conditions.type", "status.conditions.status", "status.conditions.observedGeneration",
	"status.conditions.lastTransitionTime", "status.conditions.reason", "status.conditions.message",
}

// missingFields returns the fields of the conditions that a schema does not have.
func missingFields(schema map[string]any) []string {
	var missing []string
	for _, field := range fields {
		if !hasField(schema, strings.Split(field, ".")) {
			missing = append(missing, field)
		}
	}
	return missing
}

// hasField reports whether the API server keeps a field: the schema has it, or keeps what it
// does not know.
func hasField(schema map[string]any, path []string) bool {
	if items := mapping(schema["items"]); items != nil {
		schema = items
	}
	if len(path) == 0 {
		return true
	}
	if inner := mapping(mapping(schema["properties"])[path[0]]); inner != nil {
		return hasField(inner, path[1:])
	}
	return schema["x-kubernetes-preserve-unknown-fields"] == true
}

func mapping(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
