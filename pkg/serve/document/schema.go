package document

import (
	"encoding/json"
	"maps"
	"slices"
)

// schema is a JSON schema, or a part of one.
type schema map[string]any

func textSchema() schema { return schema{"type": "string", "minLength": 1} }
func flagSchema() schema { return schema{"type": "boolean"} }

func numberSchema(minimum int) schema { return schema{"type": "integer", "minimum": minimum} }

func enumSchema(values ...string) schema { return schema{"enum": values} }

func listSchema(items schema) schema { return schema{"type": "array", "items": items} }

func mapSchema(values schema) schema {
	return schema{"type": "object", "additionalProperties": values}
}

func refSchema(name string) schema { return schema{"$ref": "#/definitions/" + name} }

// durationSchema is that of durations as in Go, or of numbers of seconds.
func durationSchema() schema {
	return schema{"anyOf": []schema{
		{"type": "number", "minimum": 0},
		{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`},
	}}
}

// textsSchema is that of one text, or of a list.
func textsSchema() schema { return schema{"anyOf": []schema{textSchema(), listSchema(textSchema())}} }

// rolloutSchema is that of the steps of a rollout.
func rolloutSchema() schema {
	return schema{"type": "array", "minItems": 1, "items": schema{"anyOf": []schema{
		numberSchema(1),
		{"type": "string", "pattern": `^([1-9][0-9]?|100)%$`},
	}}}
}

func commandSchema() schema {
	return schema{"type": "array", "minItems": 1, "items": schema{"type": []string{"string", "number", "boolean"}}}
}

// described returns a schema with a description.
func described(of schema, about string) schema {
	if _, ref := of["$ref"]; ref { // whose siblings are ignored
		return schema{"allOf": []schema{of}, "description": about}
	}
	of = maps.Clone(of)
	of["description"] = about
	return of
}

// Schema returns the JSON schema of the files, for editors.
func Schema() ([]byte, error) {
	root := documentWords.schema()
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "A file of kopf serve"
	root["required"] = []string{"kopf"}
	root["definitions"] = schema{
		"settings": settingsSchema(),
		"limits":   limitWords.schema(),
		"worker":   required(workerWords.schema(), "command"),
		"handler":  handlerSchema(),
		"side8":    required(side8Words.schema(), "resource", "apply"),
		"need":     required(needWords.schema(), "resource", "verbs"),
		"resource": resourceSchema(),
		"filter":   filterSchema(),
	}
	data, err := json.MarshalIndent(root, "", "  ")
	return append(data, '\n'), err
}

func required(of schema, names ...string) schema {
	of["required"] = names
	return of
}

// handlerSchema returns the schema of a declaration: one for each kind.
func handlerSchema() schema {
	var kinds []schema
	for _, w := range kindWords {
		of := wordsOf(w.kind).schema()
		properties, _ := of["properties"].(schema)
		value := refSchema("resource")
		if slices.Contains(activityKinds, w.kind) {
			value = schema{"const": true}
		}
		properties[string(w.kind)] = described(value, w.about)
		needed := []string{string(w.kind)}
		switch w.kind {
		case Change:
			needed = append(needed, "field")
		case Child:
			needed = append(needed, "children")
		case Convert:
			needed = append(needed, "from", "to")
		}
		of = required(of, needed...)
		of["anyOf"] = []schema{{"required": []string{"id"}}, {"required": []string{"function"}}}
		of["oneOf"] = []schema{{"required": []string{"run"}}, {"required": []string{"worker"}}, {"required": []string{"url"}}}
		kinds = append(kinds, of)
	}
	return schema{"oneOf": kinds}
}

func resourceSchema() schema {
	return schema{"anyOf": []schema{
		described(textSchema(), "As for kubectl: kopfexamples, kopfexamples.kopf.dev, or kopfexamples.v1.kopf.dev."),
		listSchema(textSchema()),
		resourceWords.schema(),
	}}
}

func filterSchema() schema {
	return schema{"anyOf": []schema{
		described(schema{"type": []string{"string", "number", "boolean", "array"}}, "A value to be equal to."),
		{
			"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
			"properties": schema{
				"present": schema{"const": true},
				"absent":  schema{"const": true},
				"equal":   schema{},
				"not":     refSchema("filter"),
				"in":      schema{"type": "array", "minItems": 1, "items": refSchema("filter")},
			},
		},
	}}
}
