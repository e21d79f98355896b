// Package sample generates objects that fit the schema of a custom resource.
package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxItems limits the lengths of generated lists and mappings.
const maxItems = 3

// Object returns the content of an object, without its kind and its metadata. What a schema asks for that cannot be
// generated is left out: patterns, unknown formats, and rules. Zero values are left out where the schema does not
// require them, because Go types do not tell them from absent ones.
func Object(random *rand.Rand, schema *apiextensionsv1.JSONSchemaProps) map[string]any {
	content := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		property := schema.Properties[name]
		if made, ok := value(random, &property, slices.Contains(schema.Required, name)); ok {
			content[name] = made
		}
	}
	return content
}

// value returns a value of a schema. It returns false for one that is left out.
func value(random *rand.Rand, schema *apiextensionsv1.JSONSchemaProps, required bool) (any, bool) {
	if !required && random.IntN(5) == 0 {
		return nil, false
	}
	if len(schema.Enum) > 0 {
		var chosen any
		err := json.Unmarshal(schema.Enum[random.IntN(len(schema.Enum))].Raw, &chosen)
		return chosen, err == nil
	}
	if schema.XIntOrString {
		return int64(1 + random.IntN(100)), true
	}
	switch schema.Type {
	case "object":
		return mapping(random, schema, required)
	case "array":
		return list(random, schema, required)
	case "string":
		return text(random, schema)
	case "integer":
		low, high := limits(schema)
		return low + random.Int64N(high-low+1), true
	case "number":
		low, _ := limits(schema)
		return float64(low) + 0.5*float64(random.IntN(2)), true
	case "boolean":
		return !required || random.IntN(2) == 0, true
	default:
		return nil, false
	}
}

func mapping(random *rand.Rand, schema *apiextensionsv1.JSONSchemaProps, required bool) (any, bool) {
	made := Object(random, schema)
	if schema.XEmbeddedResource {
		return nil, false
	}
	if values := schema.AdditionalProperties; values != nil && values.Schema != nil {
		for i := range 1 + random.IntN(maxItems) {
			if item, ok := value(random, values.Schema, true); ok {
				made[fmt.Sprintf("key-%d", i)] = item
			}
		}
	}
	return made, len(made) > 0 || required
}

func list(random *rand.Rand, schema *apiextensionsv1.JSONSchemaProps, required bool) (any, bool) {
	made := []any{}
	if schema.Items == nil || schema.Items.Schema == nil {
		return made, required
	}
	length := 1 + random.IntN(maxItems)
	if schema.MinItems != nil {
		length = max(length, int(*schema.MinItems))
	}
	if schema.MaxItems != nil {
		length = min(length, int(*schema.MaxItems))
	}
	for range length {
		if item, ok := value(random, schema.Items.Schema, true); ok {
			made = append(made, item)
		}
	}
	return made, len(made) > 0 || required
}

// text returns a string of the usual formats.
func text(random *rand.Rand, schema *apiextensionsv1.JSONSchemaProps) (any, bool) {
	number := random.IntN(1000)
	switch {
	case schema.Pattern != "":
		return nil, false
	case schema.Format == "date-time":
		return fmt.Sprintf("2026-01-02T03:04:%02dZ", number%60), true
	case schema.Format == "date":
		return fmt.Sprintf("2026-01-%02d", 1+number%28), true
	case schema.Format == "duration":
		return fmt.Sprintf("%ds", 1+number%59), true
	case schema.Format == "byte":
		return "YWJj", true
	case schema.Format == "uuid":
		return fmt.Sprintf("00000000-0000-4000-8000-%012d", number), true
	case schema.Format != "":
		return nil, false
	}
	made := fmt.Sprintf("text-%d", number)
	if schema.MinLength != nil && len(made) < int(*schema.MinLength) {
		made += strings.Repeat("x", int(*schema.MinLength)-len(made))
	}
	if schema.MaxLength != nil && len(made) > int(*schema.MaxLength) {
		made = made[len(made)-int(*schema.MaxLength):]
	}
	return made, true
}

// limits returns the smallest and the greatest whole number of a schema, without 0 if there are others.
func limits(schema *apiextensionsv1.JSONSchemaProps) (low, high int64) {
	low = 1
	high = 1000
	if schema.Minimum != nil {
		low = int64(*schema.Minimum)
		if float64(low) < *schema.Minimum || schema.ExclusiveMinimum {
			low++
		}
		high = max(high, low)
	}
	if schema.Maximum != nil {
		high = int64(*schema.Maximum)
		if schema.ExclusiveMaximum {
			high--
		}
	}
	if low == 0 && high > 0 {
		low = 1
	}
	return min(low, high), high
}
