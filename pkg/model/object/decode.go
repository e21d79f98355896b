package object

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// decode reads the mapping at the beginning of valid JSON text. It is what
// sigs.k8s.io/json makes of it, for a third of the time: the text was checked
// when its snapshot was made, and there is only one type to decode into.
func decode(text []byte) map[string]any {
	c := &cursor{text: text}
	c.space()
	return c.mapping()
}

func (c *cursor) decode() any {
	switch c.text[c.at] {
	case '{':
		return c.mapping()
	case '[':
		return c.list()
	case '"':
		return unquote(c.value())
	case 't', 'f':
		return c.value()[0] == 't'
	case 'n':
		c.value()
		return nil
	default:
		return decodeNumber(c.value())
	}
}

func (c *cursor) mapping() map[string]any {
	mapping := map[string]any{}
	for key := range c.fields() {
		mapping[unquoteKey(key)] = c.decode()
	}
	return mapping
}

func (c *cursor) list() []any {
	list := []any{}
	c.at++
	for c.space(); c.text[c.at] != ']'; c.space() {
		list = append(list, c.decode())
		if c.space(); c.text[c.at] == ',' {
			c.at++
		}
	}
	c.at++
	return list
}

// decodeNumber is an int64 if it is whole and fits, and a float64 otherwise.
func decodeNumber(text []byte) any {
	if !bytes.ContainsAny(text, ".eE") {
		if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return whole
		}
	}
	float, _ := strconv.ParseFloat(string(text), 64)
	return float
}

// unquote is the string that is written so. What is seldom in Kubernetes, such as
// surrogates and broken UTF-8, is left to those who do everything.
func unquote(text []byte) string {
	inner := text[1 : len(text)-1]
	var plain []byte
	for {
		escape := bytes.IndexByte(inner, '\\')
		if escape < 0 {
			break
		}
		char := escaped(inner[escape+1])
		if char == 0 {
			return unquoteSlowly(text)
		}
		plain = append(append(plain, inner[:escape]...), char)
		inner = inner[escape+2:]
	}
	if plain != nil {
		inner = append(plain, inner...)
	}
	if !utf8.Valid(inner) {
		return unquoteSlowly(text)
	}
	return string(inner)
}

// escaped is the character that a letter stands for behind a backslash; 0 if it
// takes more than the letter to know.
func escaped(letter byte) byte {
	switch letter {
	case '"', '\\', '/':
		return letter
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

func unquoteSlowly(text []byte) (unquoted string) {
	_ = json.Unmarshal(text, &unquoted) // of valid JSON it is valid
	return unquoted
}

// unquoteKey spares the memory for the keys that all objects have.
func unquoteKey(text []byte) string {
	switch string(text) {
	case `"metadata"`:
		return "metadata"
	case `"name"`:
		return "name"
	case `"namespace"`:
		return "namespace"
	case `"labels"`:
		return "labels"
	case `"annotations"`:
		return "annotations"
	case `"resourceVersion"`:
		return "resourceVersion"
	case `"creationTimestamp"`:
		return "creationTimestamp"
	case `"generation"`:
		return "generation"
	case `"finalizers"`:
		return "finalizers"
	case `"uid"`:
		return "uid"
	case `"apiVersion"`:
		return "apiVersion"
	case `"kind"`:
		return "kind"
	case `"spec"`:
		return "spec"
	case `"status"`:
		return "status"
	}
	return unquote(text)
}
