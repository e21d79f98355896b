// Package wire writes and reads what the stored formats are made of: JSON on one
// line, and timestamps.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Compact is one line of JSON without a line break. The texts are never part of
// an HTML page, so that <, > and & stay as they are.
func Compact(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("the value cannot be expressed as JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// ParseMapping reads JSON that somebody else may have written. Null is nil.
func ParseMapping(text string) (map[string]any, error) {
	var decoded any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &decoded); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	mapping, ok := decoded.(map[string]any)
	if !ok && decoded != nil {
		return nil, errors.New("it is not a JSON mapping")
	}
	return mapping, nil
}
