package knownfields

import (
	"maps"
	"slices"
)

// OfDefinition returns the fields of the objects of a custom resource definition, in one of its versions. It returns
// nil if the definition does not say what they are.
func OfDefinition(definition map[string]any, version string) Fields {
	spec := mapping(definition["spec"])
	if spec["preserveUnknownFields"] == true {
		return nil
	}
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		of := mapping(item)
		root := mapping(mapping(of["schema"])["openAPIV3Schema"])
		if of["name"] == version && root != nil {
			return whole{schema(root)}
		}
	}
	return nil
}

// OfAnyObject returns the fields that all objects have. Nothing is known of any other.
func OfAnyObject() Fields { return whole{schema{}} }

// whole is the schema of a whole object, which always has the fields of objects.
type whole struct{ schema }

func (w whole) field(name string) (Fields, bool) {
	switch name {
	case "apiVersion", "kind":
		return schema{"type": "string"}, false
	case "metadata":
		return metadata(), false
	default:
		return w.schema.field(name)
	}
}

func (w whole) names() []string { return append(w.schema.names(), "metadata") }

// schema is a part of a structural schema.
type schema map[string]any

func (s schema) field(name string) (Fields, bool) {
	if below := mapping(mapping(s["properties"])[name]); below != nil {
		return schema(below), false
	}
	if below := mapping(s["additionalProperties"]); below != nil {
		return schema(below), false
	}
	switch s["type"] {
	case nil: // the schema says nothing, or that it is an integer or a string
		return nil, true
	case "object":
		return nil, s["x-kubernetes-preserve-unknown-fields"] == true || s["x-kubernetes-embedded-resource"] == true || s["additionalProperties"] == true
	default:
		return nil, false
	}
}

func (s schema) names() []string { return slices.Collect(maps.Keys(mapping(s["properties"]))) }

func mapping(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
