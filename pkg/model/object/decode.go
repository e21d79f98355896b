package object

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// ParseMapping decodes a JSON object as sigs.k8s.io/json does, in a third of the time. It returns
// false for any other text.
func ParseMapping(text []byte) (mapping map[string]any, ok bool) {
	text = bytes.TrimSpace(text)
	if !gjson.ValidBytes(text) || text[0] != '{' {
		return nil, false
	}
	return decode(text), true
}

// decode decodes the mapping at the beginning of valid JSON text. The result is the same
// as that of sigs.k8s.io/json in a third of the time: the text was validated when its
// snapshot was made, and there is only one target type.
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
		mapping[unquoteKey(c.in(key))] = c.decode()
	}
	return mapping
}

func (c *cursor) list() []any {
	list := []any{}
	c.at++
	for c.space(); c.text[c.at] != ']'; c.space() {
		list = append(list, c.decode())
		c.space()
		if c.text[c.at] == ',' {
			c.at++
		}
	}
	c.at++
	return list
}

// decodeNumber returns an int64 for a whole number that fits, and a float64 otherwise.
func decodeNumber(text []byte) any {
	if !bytes.ContainsAny(text, ".eE") {
		if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return whole
		}
	}
	float, _ := strconv.ParseFloat(string(text), 64)
	return float
}

// unquote returns the unquoted string. It leaves rare cases, such as surrogates and
// invalid UTF-8, to encoding/json.
func unquote(text []byte) string {
	inner := text[1 : len(text)-1]
	if !utf8.Valid(inner) {
		return unquoteSlowly(text)
	}
	var plain strings.Builder
	for {
		escape := bytes.IndexByte(inner, '\\')
		if escape < 0 {
			break
		}
		char := escaped(inner[escape+1])
		if char == 0 {
			return unquoteSlowly(text)
		}
		if plain.Len() == 0 {
			plain.Grow(len(inner))
		}
		plain.Write(inner[:escape])
		plain.WriteByte(char)
		inner = inner[escape+2:]
	}
	if plain.Len() == 0 {
		return string(inner)
	}
	plain.Write(inner)
	return plain.String()
}

// escaped returns the character for a letter after a backslash, or 0 if the letter alone
// does not determine it.
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
	_ = json.Unmarshal(bytes.Clone(text), &unquoted) // the text is valid JSON; the copy lets others be on the stack
	return unquoted
}

// unquoteKey avoids allocations for the keys that all objects have.
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
