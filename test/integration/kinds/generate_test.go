package kinds

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// generator makes objects from schemas. What the schemas do not say is in the tables of rules and unions.
type generator struct {
	*catalog
	kind string
	// edited is set for the values that another client sets.
	edited bool
}

// objects returns objects of a kind that have all fields together. More than one is needed if fields
// exclude each other.
func (g *generator) objects(k kind) []map[string]any {
	var all []map[string]any
	for _, variant := range g.fields(shortName(k.definition), g.schemas[k.definition]) {
		content, _ := variant.(map[string]any)
		all = append(all, content)
	}
	return all
}

// values returns values of a schema that have all fields below it together.
func (g *generator) values(s *spec.Schema, at string) []any {
	if r := lookup(rules, g.kind, at); r != nil {
		if r.reason != "" {
			return nil
		}
		return []any{g.pick(r.ours, r.theirs)}
	}
	name, s := g.resolve(s)
	if r := lookup(rules, g.kind, name); r != nil {
		return []any{g.pick(r.ours, r.theirs)}
	}
	if len(s.Properties) > 0 {
		return g.fields(name, s)
	}
	return g.simple(s, at)
}

// pick returns a copy of the value of the function or of that of another client.
func (g *generator) pick(ours, theirs any) any {
	if g.edited {
		return runtime.DeepCopyJSONValue(theirs)
	}
	return runtime.DeepCopyJSONValue(ours)
}

// simple returns a value of a schema without properties.
func (g *generator) simple(s *spec.Schema, at string) []any {
	switch {
	case s.Type.Contains("array"):
		return []any{g.list(s, at)}
	case s.Type.Contains("object") && s.AdditionalProperties != nil:
		mapping := map[string]any{}
		for i, value := range g.values(s.AdditionalProperties.Schema, at+"[]") {
			mapping[fmt.Sprint("key_", i+1)] = value
		}
		return []any{mapping}
	case s.Type.Contains("object"):
		return []any{map[string]any{}}
	case len(s.Type) == 0:
		return []any{g.pick("value-1", "value-2")}
	case len(s.Enum) > 0:
		return []any{g.pick(s.Enum[0], s.Enum[min(1, len(s.Enum)-1)])}
	case s.Type.Contains("boolean"):
		return []any{!g.edited}
	case s.Type.Contains("integer"):
		return []any{g.pick(int64(1), int64(2))}
	case s.Type.Contains("number"):
		return []any{g.pick(1.5, 2.5)}
	case s.Type.Contains("string") && s.Format == "byte":
		text, _ := g.pick("value-1", "value-2").(string)
		return []any{base64.StdEncoding.EncodeToString([]byte(text))}
	case s.Type.Contains("string"):
		return []any{g.pick("value-1", "value-2")}
	}
	panic(fmt.Sprintf("%s: no rule for %v", at, s.Type))
}

// list returns a list with all values of its items. The keys of items are those of the function, because an item
// with another key is another one.
func (g *generator) list(s *spec.Schema, at string) []any {
	items, keys := g.values(s.Items.Schema, at+"[]"), keysOf(s)
	ours := *g
	ours.edited = false
	for i, same := range ours.values(s.Items.Schema, at+"[]") {
		item, isMapping := items[i].(map[string]any)
		same, _ := same.(map[string]any)
		for n, key := range keys {
			if value, has := same[key]; has && isMapping {
				item[key] = value
			}
			if n == 0 {
				item[key] = numbered(item[key], i)
			}
		}
	}
	return items
}

// numbered returns a different value for each item of a list.
func numbered(value any, i int) any {
	switch value := value.(type) {
	case string:
		if i > 0 {
			return fmt.Sprint(value, "-", i)
		}
	case int64:
		return value + int64(i)
	}
	return value
}

// fields returns objects of a definition that have all fields together.
func (g *generator) fields(name string, s *spec.Schema) []any {
	members := g.unions(name)
	exclusive := map[string]bool{}
	for _, member := range members {
		if member[only] == nil {
			for field := range member {
				exclusive[field] = true
			}
		}
	}
	common := map[string][]any{}
	for field, of := range s.Properties {
		if !exclusive[field] && !isStatus(field, &of) {
			g.add(common, name, field, &of)
		}
	}
	var objects []any
	for i, member := range members {
		own := g.fieldsOf(member, name, s)
		number := most(own)
		switch {
		case member[only] != nil:
			objects = append(objects, combine(number, own)...)
			continue
		case i == 0 && member[first] == nil:
			number = max(number, most(common))
		}
		objects = append(objects, combine(number, common, own)...)
	}
	return objects
}

// fieldsOf returns the values of the fields of a member of a union.
func (g *generator) fieldsOf(member map[string]any, name string, s *spec.Schema) map[string][]any {
	own := map[string][]any{}
	for field, value := range member {
		of, exists := s.Properties[field]
		r, isRule := value.(*rule)
		switch {
		case !exists: // only, first, or a field of another release
		case value == generated:
			g.add(own, name, field, &of)
		case isRule:
			own[field] = []any{g.pick(r.ours, r.theirs)}
		default:
			own[field] = []any{value}
		}
	}
	return own
}

// combine returns so many objects with all fields. Fields that have fewer values repeat the last one.
func combine(number int, all ...map[string][]any) (objects []any) {
	for n := range number {
		content := map[string]any{}
		for _, fields := range all {
			for field, values := range fields {
				content[field] = runtime.DeepCopyJSONValue(values[min(n, len(values)-1)])
			}
		}
		objects = append(objects, content)
	}
	return objects
}

// isStatus reports whether a field is the status of an object, which a function cannot return.
func isStatus(field string, s *spec.Schema) bool {
	return field == "status" && (len(s.AllOf) == 1 || s.Ref.String() != "")
}

// add adds the values of a field, unless it is never set.
func (g *generator) add(to map[string][]any, name, field string, s *spec.Schema) {
	if values := g.values(s, name+"."+field); len(values) > 0 {
		to[field] = values
	}
}

// most returns the largest number of values that a field has.
func most(fields map[string][]any) int {
	number := 1
	for values := range maps.Values(fields) {
		number = max(number, len(values))
	}
	return number
}

// unions returns the members of the unions of a definition, of which an object has one.
func (g *generator) unions(name string) []map[string]any {
	members := lookup(unions, g.kind, name)
	if members == nil {
		return []map[string]any{{}}
	}
	return members
}

// lookup finds the entry of a table: that for a kind, that for a definition of a group, and that for
// definitions of the name in all groups.
func lookup[T any](table map[string]T, kind, at string) (found T) {
	_, short, _ := strings.Cut(at, ".")
	_, shorter, _ := strings.Cut(short, ".")
	for _, key := range []string{kind + ":" + shorter, at, shorter} {
		if entry, has := table[key]; has {
			return entry
		}
	}
	return found
}
