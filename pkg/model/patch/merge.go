package patch

import (
	"maps"

	"github.com/kopf-go/kopf/pkg/model/diff"
)

// ApplyMerge returns the body after a merge patch, exactly as RFC 7386 and the API server
// define it. The result is always a new mapping that shares untouched parts with the
// body.
func ApplyMerge(body, merge map[string]any) map[string]any {
	merged := make(map[string]any, len(body)+len(merge))
	maps.Copy(merged, body)
	for key, change := range merge {
		if mapping, ok := change.(map[string]any); ok && mapping != nil {
			inner, _ := body[key].(map[string]any)
			merged[key] = ApplyMerge(inner, mapping)
		} else if absent(change) {
			delete(merged, key)
		} else {
			merged[key] = change
		}
	}
	return merged
}

// Difference returns the smallest merge patch that turns one object into another one, or
// nil if they are equal. Lists are replaced as a whole, as merge patches require.
// Numbers are compared by value; see diff.Equal.
func Difference(from, to map[string]any) map[string]any {
	merge := map[string]any{}
	for key, value := range from {
		if !absent(value) && absent(to[key]) {
			merge[key] = nil
		}
	}
	for key, wanted := range to {
		if change := difference(from[key], wanted); change != nil {
			merge[key] = change
		}
	}
	return nilIfEmpty(merge)
}

// difference returns what must be merged into one value to get another one. It returns
// nil if the values are equal, or if the wanted value is absent.
func difference(from, to any) any {
	wanted, isMapping := to.(map[string]any)
	if !isMapping || wanted == nil {
		if absent(to) || diff.Equal(from, to) {
			return nil
		}
		return to
	}
	if present, ok := from.(map[string]any); ok && present != nil {
		if merge := Difference(present, wanted); merge != nil {
			return merge
		}
		return nil
	}
	return ApplyMerge(nil, wanted) // without nulls: there is nothing to remove
}

// SplitStatus divides a merge patch in two, because resources with a status subresource
// need one request for the status and one for everything else. A part is nil if it
// changes nothing.
func SplitStatus(merge map[string]any) (main, status map[string]any) {
	change, ok := merge["status"]
	if !ok {
		return nilIfEmpty(merge), nil
	}
	main = maps.Clone(merge)
	delete(main, "status")
	return nilIfEmpty(main), map[string]any{"status": change}
}

func nilIfEmpty(merge map[string]any) map[string]any {
	if len(merge) == 0 {
		return nil
	}
	return merge
}

func absent(value any) bool { return diff.Equal(value, nil) }
