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
	return c.mapping(known)
}

// decode decodes the value at the cursor, or returns the known one if it is equal.
func (c *cursor) decode(known any) any {
	if known != nil {
		begin := c.at
		if c.equals(known) {
			return known
		}
		c.at = begin
	}
	switch c.text[c.at] {
	case '{':
		mapping, _ := known.(map[string]any)
		return c.mapping(mapping)
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

func (c *cursor) mapping(known map[string]any) map[string]any {
	mapping := map[string]any{}
	for key := range c.fields() {
		name := unquoteKey(c.in(key))
		mapping[name] = c.decode(known[name])
	}
	return mapping
}

func (c *cursor) list() []any {
	list := []any{}
	for range c.items() {
		list = append(list, c.decode(nil))
	}
	return list
}

// equals reads the value at the cursor, and reports whether its decoded form is the known one. If it is
// not, the cursor stays within the value. A mapping must be sorted by its keys, as those are that were
// stored by this project: then no key is there twice.
func (c *cursor) equals(known any) bool {
	switch first := c.text[c.at]; known := known.(type) {
	case map[string]any:
		return first == '{' && c.equalsMapping(known)
	case []any:
		return first == '[' && c.equalsList(known)
	case string:
		return first == '"' && isQuoted(c.value(), known)
	case int64, float64, bool:
		return first != '{' && first != '[' && first != '"' && c.decode(nil) == known
	}
	return false
}

func (c *cursor) equalsMapping(known map[string]any) bool {
	count := 0
	var last []byte
	for at := range c.fields() {
		key := c.in(at)
		key = key[1 : len(key)-1]
		value, ok := known[string(key)]
		isNext := count == 0 || bytes.Compare(last, key) < 0
		if !ok || !isNext || bytes.IndexByte(key, '\\') >= 0 || !c.equals(value) {
			return false
		}
		last = key
		count++
	}
	return count == len(known)
}

func (c *cursor) equalsList(known []any) bool {
	count := 0
	for range c.items() {
		if count == len(known) || !c.equals(known[count]) {
			return false
		}
		count++
	}
	return count == len(known)
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
