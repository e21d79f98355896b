package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// CheckConditions returns an error if a resource cannot have the conditions that are declared for it. Without the
// permission to get the definition, the schema is unknown.
func CheckConditions(declared registry.Handlers, of selector.Resource, definition map[string]any, permitted bool) (err error) {
	isOutcome := func(d *handler.Declaration) bool { return d.Kind.IsChange() || d.Kind.IsBackground() }
	switch {
	case !slices.ContainsFunc(declared, isOutcome):
		err = fmt.Errorf("kopf.Conditions is declared for %s, which has no handlers of changes, daemons, or timers", of)
	case permitted:
		err = checkSchema(of, definition)
	default:
		err = checkStatus(of)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", declared.OfKind(handler.Conditions)[0].DeclaredAt, err)
	}
	return nil
}

// checkSchema returns an error if the objects of a resource cannot have the conditions. Without a
// definition, it is not a custom resource.
func checkSchema(of selector.Resource, definition map[string]any) error {
	if definition == nil {
		return fmt.Errorf("%s is not a custom resource, and its conditions belong to Kubernetes: remove kopf.Conditions for it", of)
	}
	if err := checkStatus(of); err != nil {
		return err
	}
	schema := schemaOf(definition, of.Version)
	var missing []string
	for _, field := range fields {
		if !hasField(schema, strings.Split(field, ".")) {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		missing = inShort(missing)
		return fmt.Errorf("the schema of %s does not have the fields %s, so they would be lost: in the version %s of its CustomResourceDefinition, add %s; or remove kopf.Conditions",
			of, strings.Join(missing, " and "), of.Version, toAdd(schema, missing))
	}
	return nil
}

// checkStatus returns an error if a resource has no status subresource: each write of the conditions
// would be another generation, so they would never be about the current one.
func checkStatus(of selector.Resource) error {
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

// snippets are YAML, on one line, for fields that are missing as a whole.
var snippets = map[string]string{
	fields[0]:       "observedGeneration: {type: integer, format: int64, default: -1}",
	conditionsField: "conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}",
}

// conditionsField is the list of the conditions.
const conditionsField = "status.conditions"

// inShort names the fields, and the list of the conditions instead of all of its fields.
func inShort(missing []string) []string {
	ofList := func(field string) bool { return strings.HasPrefix(field, conditionsField) }
	rest := slices.DeleteFunc(slices.Clone(missing), ofList)
	if len(missing)-len(rest) < len(slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return !ofList(field) })) {
		return missing
	}
	return append(rest, conditionsField)
}

// toAdd says what to add to a schema.
func toAdd(schema map[string]any, missing []string) string {
	var lines []string
	for _, field := range missing {
		snippet, isWhole := snippets[field]
		if !isWhole {
			return "these fields"
		}
		lines = append(lines, snippet)
	}
	if mapping(mapping(schema["properties"])["status"]) == nil {
		return fmt.Sprintf("to the properties of the schema %q", "status: {type: object, properties: {"+strings.Join(lines, ", ")+"}}")
	}
	return "to the properties of status \"" + strings.Join(lines, `" and "`) + "\""
}

// hasField reports whether the API server keeps a field: the schema has it, or keeps what it
// does not know.
func hasField(schema map[string]any, path []string) bool {
	items := mapping(schema["items"])
	if items != nil {
		schema = items
	}
	if len(path) == 0 {
		return true
	}
	inner := mapping(mapping(schema["properties"])[path[0]])
	if inner != nil {
		return hasField(inner, path[1:])
	}
	return schema["x-kubernetes-preserve-unknown-fields"] == true
}

func mapping(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
