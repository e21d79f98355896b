package object

import (
	stdjson "encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"sigs.k8s.io/json"
)

// Normalize converts a Go value to the form of decoded JSON: whole numbers become int64,
// and structs become mappings. The result shares nothing with the value. It fails for
// values that cannot be expressed as JSON.
func Normalize(value any) (any, error) {
	switch value := value.(type) {
	case nil, bool, string, int64:
		return value, nil
	case int:
		return int64(value), nil
	case float64, map[string]any, []any:
		if isDecoded(value, maxDepth) {
			return Copy(value), nil
		}
	}
	data, err := stdjson.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be expressed as JSON: %w", value, err)
	}
	var decoded any
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &decoded); err != nil {
		return nil, fmt.Errorf("a value of type %T cannot be read back from JSON: %w", value, err)
	}
	return decoded, nil
}

// maxDepth is far more than any object needs. A deeper value may contain itself, which
// encoding/json detects.
const maxDepth = 1000

// isDecoded reports whether the value contains only the types of decoded JSON, with
// finite numbers, and without nil containers, which mean null.
func isDecoded(value any, depth int) bool {
	if depth == 0 {
		return false
	}
	switch value := value.(type) {
	case nil, bool, string, int64:
		return true
	case float64:
		return !math.IsNaN(value) && !math.IsInf(value, 0)
	case map[string]any:
		return value != nil && allDecoded(maps.Values(value), depth-1)
	case []any:
		return value != nil && allDecoded(slices.Values(value), depth-1)
	}
	return false
}

func allDecoded(values iter.Seq[any], depth int) bool {
	for value := range values {
		if !isDecoded(value, depth) {
			return false
		}
	}
	return true
}
