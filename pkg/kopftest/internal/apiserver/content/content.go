// Package content works on the content of unstructured objects: values of JSON, as
// k8s.io/apimachinery decodes them. The general functions of other packages take several times as
// long, and a server in memory does little else.
package content

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Append adds the JSON of a value to a text. The keys of objects are sorted. Values that are not
// of JSON are encoded as encoding/json does.
func Append(text []byte, value any) ([]byte, error) {
	switch value := value.(type) {
	case map[string]any:
		return appendObject(text, value)
	case []any:
		return appendList(text, value)
	case string:
		return appendString(text, value)
	case int64:
		return strconv.AppendInt(text, value, 10), nil
	case bool:
		return strconv.AppendBool(text, value), nil
	case nil:
		return append(text, "null"...), nil
	}
	data, err := json.Marshal(value)
	return append(text, data...), err
}

func appendObject(text []byte, object map[string]any) ([]byte, error) {
	if object == nil {
		return append(text, "null"...), nil
	}
	var few [16]string // most objects are small: their keys need no memory
	keys := few[:0]
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var err error
	text = append(text, '{')
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = appendString(text, key); err != nil {
			return nil, err
		}
		if text, err = Append(append(text, ':'), object[key]); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

func appendList(text []byte, list []any) ([]byte, error) {
	if list == nil {
		return append(text, "null"...), nil
	}
	var err error
	text = append(text, '[')
	for i, item := range list {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = Append(text, item); err != nil {
			return nil, err
		}
	}
	return append(text, ']'), nil
}

// appendString leaves everything that needs an escape, or that is not ASCII, to encoding/json.
func appendString(text []byte, value string) ([]byte, error) {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			data, err := json.Marshal(value)
			return append(text, data...), err
		}
	}
	text = append(text, '"')
	text = append(text, value...)
	return append(text, '"'), nil
}

// Copy returns a copy of a value, as if it were encoded and decoded: a number without a fraction is
// an integer.
func Copy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, item := range value {
			copied[key] = Copy(item)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = Copy(item)
		}
		return copied
	case float64:
		if whole := int64(value); float64(whole) == value && math.Abs(value) < maxWhole {
			return whole
		}
	}
	return value
}

// maxWhole is above all numbers that every decoder takes for integers.
const maxWhole = 1 << 53

// Owners returns the owners of the fields of an object, which are the largest part of many objects.
// They are replaced as a whole, and never changed in place, so that objects can share them.
func Owners(object map[string]any) []any {
	metadata, _ := object["metadata"].(map[string]any)
	owners, _ := metadata["managedFields"].([]any)
	return owners
}

// CopyObject returns a copy of an object, as Copy does, which shares the owners of the fields.
func CopyObject(object map[string]any) map[string]any {
	copied := make(map[string]any, len(object))
	for key, value := range object {
		metadata, isMetadata := value.(map[string]any)
		if key != "metadata" || !isMetadata {
			copied[key] = Copy(value)
			continue
		}
		mine := make(map[string]any, len(metadata))
		for name, item := range metadata {
			if name != "managedFields" {
				item = Copy(item)
			}
			mine[name] = item
		}
		copied[key] = mine
	}
	return copied
}
