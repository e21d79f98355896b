package document

import "go.yaml.in/yaml/v3"

// word is a key of a mapping: its name, its description and schema for editors, and what it sets.
type word[T any] struct {
	name   string
	about  string
	schema schema
	set    func(r *reader, n *yaml.Node, into *T)
}

// words are the keys of a mapping.
type words[T any] []word[T]

func (all words[T]) names() []string {
	var names []string
	for _, w := range all {
		names = append(names, w.name)
	}
	return names
}

func (all words[T]) named(name string) *word[T] {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// schema returns the schema of the mapping.
func (all words[T]) schema() schema {
	properties := schema{}
	for _, w := range all {
		properties[w.name] = described(w.schema, w.about)
	}
	return schema{"type": "object", "additionalProperties": false, "properties": properties}
}

// decodeWords decodes a mapping, and returns which words it has.
func decodeWords[T any](r *reader, n *yaml.Node, known words[T], into *T, what string) map[string]bool {
	given := map[string]bool{}
	r.each(n, what, func(key, value *yaml.Node) {
		w := known.named(key.Value)
		if w == nil {
			r.problem(key, "%s has an unknown word, %s%s", what, key.Value, suggest(key.Value, known.names(), ""))
			return
		}
		given[key.Value] = true
		w.set(r, value, into)
	})
	return given
}
