package conditions

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// keeping returns a schema that keeps unknown fields.
func keeping() m { return m{"type": "object", "x-kubernetes-preserve-unknown-fields": true} }

func properties(of m) m { return m{"type": "object", "properties": of} }

func TestCheck(t *testing.T) {
	text := m{"type": "string"}
	complete := properties(m{
		"type": text, "status": text, "observedGeneration": m{"type": "integer"}, "lastTransitionTime": text, "reason": text, "message": text,
	})
	list := func(items m) m { return m{"type": "array", "items": items} }
	status := func(of m) m { return properties(m{"status": properties(of)}) }
	tests := map[string]struct {
		schema   m
		noStatus bool
		want     string
	}{
		"all fields":             {schema: status(m{"observedGeneration": m{"type": "integer"}, "conditions": list(complete)})},
		"an open schema":         {schema: keeping()},
		"an open status":         {schema: properties(m{"status": keeping()})},
		"open conditions":        {schema: status(m{"observedGeneration": m{"type": "integer"}, "conditions": list(keeping())})},
		"no generation":          {schema: status(m{"conditions": list(complete)}), want: "does not have the fields status.observedGeneration, so"},
		"no conditions":          {schema: status(m{"observedGeneration": m{"type": "integer"}}), want: "fields status.conditions.type, status.conditions.status, "},
		"conditions without all": {schema: status(m{"observedGeneration": m{}, "conditions": list(properties(m{"type": text, "status": text, "reason": text}))}), want: "fields status.conditions.observedGeneration, status.conditions.lastTransitionTime, status.conditions.message,"},
		"no status":              {schema: properties(nil), want: "status.observedGeneration"},
		"no subresource":         {schema: keeping(), noStatus: true, want: "has no status subresource"},
		"no custom resource":     {want: "is not a custom resource"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Status: !test.noStatus}
			var definition m
			if test.schema != nil {
				definition = m{"spec": m{"versions": []any{
					m{"name": "v0", "schema": m{"openAPIV3Schema": m{}}}, m{"name": "v1", "schema": m{"openAPIV3Schema": test.schema}},
				}}}
			}
			err := Check(of, definition)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
