// Package wire encodes and decodes the elements of the stored formats: JSON on one
// line, and timestamps.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Compact returns the value as JSON without a line break. The texts are never part of
// an HTML page, so <, >, and & are not escaped.
func Compact(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("the value cannot be expressed as JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// ParseMapping decodes a JSON object, which may come from another writer. Parts that are equal in the known mapping are
// taken from there, as object.ParseMapping does. It returns nil for null.
func ParseMapping(text string, known map[string]any) (map[string]any, error) {
	if mapping, ok := object.ParseMapping(text, known); ok {
		return mapping, nil
	}
	var decoded any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &decoded); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if decoded != nil {
		return nil, errors.New("it is not a JSON object")
	}
	return nil, nil //nolint:nilnil // null is no mapping, and no mistake
}
