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
//
// Parts that are equal in the known mapping, at the same place, are taken from there: the result takes
// little memory, and is compared quickly with the known one. Pass nil if nothing is known. Do not modify
// either of them afterwards.
func ParseMapping(text string, known map[string]any) (mapping map[string]any, ok bool) {
	var room [onStack]byte
	data := bytes.TrimSpace(append(room[:0], text...))
	if !gjson.ValidBytes(data) || data[0] != '{' {
		return nil, false
	}
	return decode(data, known), true
}

// decode decodes the mapping at the beginning of valid JSON text. The result is the same
// as that of sigs.k8s.io/json in a third of the time: the text was validated when its
// snapshot was made, and there is only one target type. Equal parts are those of the known mapping.
func decode(text []byte, known map[string]any) map[string]any {
	c := &cursor{text: text}
	c.space()
	mapping, _ := c.mapping(known)
	return mapping
}

// decode decodes the value at the cursor. If it is equal to the known one, it returns that.
func (c *cursor) decode(known any) (value any, isKnown bool) {
	switch c.text[c.at] {
	case '{':
		expected, _ := known.(map[string]any)
		return c.mapping(expected)
	case '[':
		expected, _ := known.([]any)
		if list, isKnown := c.list(expected); !isKnown {
			return list, false
		}
		return known, true
	case '"':
		text := c.value()
		if expected, ok := known.(string); ok && isQuoted(text, expected) {
			return known, true
		}
		return unquote(text), false
	case 't', 'f':
		value = c.value()[0] == 't'
	case 'n':
		c.value()
	default:
		value = decodeNumber(c.value())
	}
	return value, value == known
}

// mapping decodes a mapping. It returns the known one only if the keys in the text are sorted, as those are that this
// project stores: then no key is there twice.
func (c *cursor) mapping(known map[string]any) (mapping map[string]any, isKnown bool) {
	begin := *c
	if known == nil {
		mapping = map[string]any{}
	}
	var last []byte
	same := 0 // the number of fields at the beginning that are those of the known mapping
	for at := range c.fields() {
		key := c.in(at)
		expected, exists := known[string(key[1:len(key)-1])]
		value, isKnown := c.decode(expected)
		if mapping == nil && exists && isKnown && isNextKey(last, key) {
			last = key
			same++
			continue
		}
		if mapping == nil {
			mapping = begin.firstFields(same, known)
		}
		mapping[unquoteKey(key)] = value
	}
	if mapping == nil && same == len(known) {
		return known, true
	}
	if mapping == nil {
		mapping = begin.firstFields(same, known)
	}
	return mapping, false
}

// isNextKey reports whether the raw key is the next one in the order of keys, and has no escapes.
func isNextKey(last, key []byte) bool {
	return bytes.Compare(last, key) < 0 && bytes.IndexByte(key, '\\') < 0
}

// firstFields returns the first fields of the mapping at the cursor, which are those of the known one.
func (c *cursor) firstFields(number int, known map[string]any) map[string]any {
	mapping := map[string]any{}
	for at := range c.fields() {
		if len(mapping) == number {
			break
		}
		key := unquoteKey(c.in(at))
		mapping[key] = known[key]
	}
	return mapping
}

// list decodes a list, or returns the known one.
func (c *cursor) list(known []any) (list []any, isKnown bool) {
	if known == nil {
		list = []any{}
	}
	same := 0
	for range c.items() {
		var expected any
		exists := same < len(known)
		if exists {
			expected = known[same]
		}
		value, isKnown := c.decode(expected)
		if list == nil && exists && isKnown {
			same++
			continue
		}
		if list == nil {
			list = append([]any{}, known[:same]...)
		}
		list = append(list, value)
	}
	if list == nil && same == len(known) {
		return known, true
	}
	if list == nil {
		list = append([]any{}, known[:same]...)
	}
	return list, false
}

// isQuoted reports whether the text is the string in quotes.
func isQuoted(text []byte, known string) bool {
	inner := text[1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == known
	}
	return unquote(text) == known
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
