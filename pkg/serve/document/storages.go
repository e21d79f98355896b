package document

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kopf-go/kopf/pkg/storage"
)

// choice is what a file can choose for a setting whose type is an interface: one of several structs, by its word,
// or a list of them.
type choice struct {
	words map[string]reflect.Type
	list  reflect.Type
}

// choices are the settings with a choice, by their types. Storages of other packages have no word.
var choices = map[reflect.Type]choice{
	reflect.TypeFor[storage.DiffBase](): {
		words: map[string]reflect.Type{
			"annotations": reflect.TypeFor[storage.AnnotationsDiffBase](),
			"status":      reflect.TypeFor[storage.StatusDiffBase](),
		},
		list: reflect.TypeFor[storage.MultiDiffBase](),
	},
	reflect.TypeFor[storage.Progress](): {
		words: map[string]reflect.Type{
			"annotations": reflect.TypeFor[storage.AnnotationsProgress](),
			"status":      reflect.TypeFor[storage.StatusProgress](),
			"smart":       reflect.TypeFor[storage.SmartProgress](),
		},
		list: reflect.TypeFor[storage.MultiProgress](),
	},
}

func (c choice) names() []string { return slices.Sorted(maps.Keys(c.words)) }

// decodeStorage decodes a storage, or a list of them, all of which are used.
func decodeStorage(r *reader, n *yaml.Node, into reflect.Value, what string) {
	of := choices[into.Type()]
	if resolve(n).Kind != yaml.SequenceNode {
		decodeOneStorage(r, n, of, into, what)
		return
	}
	all := reflect.New(of.list).Elem()
	for _, item := range r.list(n, what) {
		each := reflect.New(into.Type()).Elem()
		decodeOneStorage(r, item, of, each, what)
		all = reflect.Append(all, each)
	}
	if all.Len() == 0 {
		r.problem(n, "%s has no storage: name at least one of %s", what, strings.Join(of.names(), ", "))
	}
	into.Set(all)
}

func decodeOneStorage(r *reader, n *yaml.Node, of choice, into reflect.Value, what string) {
	if n = resolve(n); n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		r.problem(n, "%s must be one storage, such as {annotations: {prefix: my-op.example.com}}, or a list of them", what)
		return
	}
	word, value := n.Content[0], n.Content[1]
	chosen, ok := of.words[word.Value]
	if !ok {
		r.problem(word, "%s has an unknown storage, %s%s", what, word.Value, suggest(word.Value, of.names(), "it must be "+listOf(of.names())))
		return
	}
	mistakes, one := len(r.errs), reflect.New(chosen).Elem()
	decodeGroup(r, value, one, what+"."+word.Value)
	if checked, can := one.Interface().(storage.Validator); can && len(r.errs) == mistakes {
		if err := checked.Validate(); err != nil {
			r.problem(n, "%s: %v", what, err)
		}
	}
	into.Set(one)
}

func storageSchema(of choice) schema {
	properties := schema{}
	for word, each := range of.words {
		properties[word] = groupSchema(each)
	}
	one := schema{"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1, "properties": properties}
	return schema{"anyOf": []schema{one, {"type": "array", "minItems": 1, "items": one}}}
}
