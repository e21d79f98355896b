package kinds

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fields are fields of definitions: "core.v1.PodSpec.hostname".
type fields map[string]bool

// note adds the fields that an object has.
func (c *catalog) note(all fields, k kind, u *unstructured.Unstructured) {
	c.noteIn(all, shortName(k.definition), c.schemas[k.definition], u.Object)
}

func (c *catalog) noteIn(all fields, definition string, s *spec.Schema, value any) {
	if name, resolved := c.resolve(s); name != "" {
		definition, s = name, resolved
	}
	switch value := value.(type) {
	case map[string]any:
		for field, below := range value {
			of, isField := s.Properties[field]
			switch {
			case isField && !isStatus(field, &of):
				all[definition+"."+field] = true
				c.noteIn(all, definition, &of, below)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				c.noteIn(all, definition, s.AdditionalProperties.Schema, below)
			}
		}
	case []any:
		for _, item := range value {
			if s.Items != nil {
				c.noteIn(all, definition, s.Items.Schema, item)
			}
		}
	}
}

// reachable adds all fields that an object of a definition can have, except for its status, and for what is below a
// field that is never set.
func (c *catalog) reachable(all fields, definition string, s *spec.Schema) {
	if name, resolved := c.resolve(s); name != "" {
		definition, s = name, resolved
	}
	for field, of := range s.Properties {
		if name := definition + "." + field; !all[name] && !isStatus(field, &of) {
			all[name] = true
			if r := lookup(rules, "", name); r == nil || r.reason == "" || r.reason == reserved {
				c.reachable(all, definition, &of)
			}
		}
	}
	if s.Items != nil {
		c.reachable(all, definition, s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.reachable(all, definition, s.AdditionalProperties.Schema)
	}
}

// Every field of every built-in kind is set in a child, or it is known why not.
func TestEveryFieldIsSet(t *testing.T) {
	c := newCatalog(t)
	all, set := fields{}, fields{}
	for _, k := range c.kinds {
		c.reachable(all, shortName(k.definition), c.schemas[k.definition])
		for _, child := range c.specimens(k, "x") {
			c.note(set, k, child.ours)
		}
	}
	left := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := lookup(rules, "", name)
		switch {
		case set[name]:
		case r != nil && r.reason != "":
			left++
		default:
			t.Errorf("no child has %s, and no rule says why", name)
		}
	}
	t.Logf("%d kinds have %d fields, of which %d are set, and %d cannot be set", len(c.kinds), len(all), len(set), left)
}
