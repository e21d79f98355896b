package patch

import (
	"encoding/json"
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
)

// Operations returns the operations (RFC 6902) that turn one object into another one, or
// none if they are equal. It fails only for values that are not JSON.
func Operations(from, to map[string]any) ([]jsonpatch.Operation, error) {
	before, err := json.Marshal(orEmpty(from))
	if err != nil {
		return nil, fmt.Errorf("the object cannot be encoded: %w", err)
	}
	after, err := json.Marshal(orEmpty(to))
	if err != nil {
		return nil, fmt.Errorf("the patched object cannot be encoded: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("the patch cannot be expressed as a JSON patch: %w", err)
	}
	return operations, nil
}

// populated returns the merge patch without mappings that would be created empty.
func populated(body, merge map[string]any) map[string]any {
	kept := make(map[string]any, len(merge))
	for key, change := range merge {
		mapping, isMapping := change.(map[string]any)
		if !isMapping || mapping == nil {
			kept[key] = change
		} else if inner, ok := body[key].(map[string]any); ok && inner != nil {
			kept[key] = populated(inner, mapping)
		} else if values, worth := created(mapping, false); worth || !absent(body[key]) {
			kept[key] = values
		}
	}
	return kept
}

func orEmpty(body map[string]any) map[string]any {
	if body == nil {
		return map[string]any{}
	}
	return body
}
