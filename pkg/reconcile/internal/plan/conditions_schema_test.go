package plan

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// keeping returns a schema that keeps unknown fields.
func keeping() m { return m{"type": "object", "x-kubernetes-preserve-unknown-fields": true} }

func properties(of m) m { return m{"type": "object", "properties": of} }

func TestSchemasOfConditionsAreChecked(t *testing.T) {
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
		"no conditions":          {schema: status(m{"observedGeneration": m{"type": "integer"}}), want: "does not have the fields status.conditions, so they would be lost: in the version v1 of its CustomResourceDefinition, add to the properties of status \"conditions: {"},
		"conditions without all": {schema: status(m{"observedGeneration": m{}, "conditions": list(properties(m{"type": text, "status": text, "reason": text}))}), want: "fields status.conditions.observedGeneration and status.conditions.lastTransitionTime and status.conditions.message, so they would be lost: in the version v1 of its CustomResourceDefinition, add these fields; or"},
		"no status":              {schema: properties(nil), want: "does not have the fields status.observedGeneration and status.conditions, so"},
		"no subresource":         {schema: keeping(), noStatus: true, want: "has no status subresource"},
		"no custom resource":     {want: "is not a custom resource"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Status: !test.noStatus}
			var definition m
			if test.schema != nil {
				definition = defining(test.schema)
			}
			err := checkSchema(of, definition)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// defining returns a definition whose version v1 has the schema.
func defining(schema m) m {
	return m{"spec": m{"versions": []any{
		m{"name": "v0", "schema": m{"openAPIV3Schema": m{}}}, m{"name": "v1", "schema": m{"openAPIV3Schema": schema}},
	}}}
}

// What the message says to add is enough.
func TestFieldsCanBeAddedFromTheMessage(t *testing.T) {
	of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Status: true}
	tests := map[string]struct {
		schema m
		into   func(schema m) m
	}{
		"a status":  {properties(m{"status": properties(m{"size": m{"type": "integer"}})}), func(schema m) m { return schema["properties"].(m)["status"].(m)["properties"].(m) }},
		"no status": {properties(m{"spec": keeping()}), func(schema m) m { return schema["properties"].(m) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkSchema(of, defining(test.schema))
			snippets := regexp.MustCompile(`"([a-zA-Z]+: {[^"]*})"`).FindAllStringSubmatch(fmt.Sprint(err), -1)
			for _, found := range snippets {
				added := m{}
				if err := yaml.Unmarshal([]byte(found[1]), &added); err != nil {
					t.Fatalf("%s: %v", found[1], err)
				}
				maps.Copy(test.into(test.schema), added)
			}
			if err := checkSchema(of, defining(test.schema)); err != nil || len(snippets) == 0 {
				t.Errorf("with %v, got %v", snippets, err)
			}
		})
	}
}

func TestConditionsAreDeclaredForResourcesThatCanHaveThem(t *testing.T) {
	fn := handlertest.Function(func(context.Context, *handler.Call) error { return nil })
	conditions := func(r *registry.Registry) { r.Add(handler.ForConditions(kexes, nil)) }
	changes := func(r *registry.Registry) { r.Add(handler.Create(kexes, fn, handler.ID("create"))) }
	background := func(r *registry.Registry) { r.Add(handler.Daemon(kexes, fn, handler.ID("daemon"))) }
	events := func(r *registry.Registry) { r.Add(handler.Watch(kexes, fn, handler.ID("watch"))) }
	closed := defining(properties(m{"spec": keeping()}))
	tests := map[string]struct {
		handlers   func(r *registry.Registry)
		definition m
		permitted  bool
		noStatus   bool
		want       string
	}{
		"handlers of changes":          {changes, defining(keeping()), true, false, ""},
		"handlers in the background":   {background, defining(keeping()), true, false, ""},
		"handlers of events":           {events, defining(keeping()), true, false, "has no handlers of changes, daemons, or timers"},
		"no field for them":            {changes, closed, true, false, "does not have the fields"},
		"an unknown schema":            {changes, nil, false, false, ""},
		"no custom resource":           {changes, nil, true, false, "is not a custom resource"},
		"an unknown schema, no status": {changes, nil, false, true, "has no status subresource"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var r registry.Registry
			conditions(&r)
			test.handlers(&r)
			all, err := r.Handlers(scheme.Scheme)
			if err != nil {
				t.Fatal(err)
			}
			of := selector.Resource{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Status: !test.noStatus}
			err = CheckConditions(all, of, test.definition, test.permitted)
			if (test.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "_test.go:")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
