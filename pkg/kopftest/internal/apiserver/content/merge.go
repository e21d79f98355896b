package content

import "reflect"

// Merge applies a JSON merge patch to an object, and changes the object. It takes over parts of the
// patch. Like the library that API servers use, it removes nulls from the objects in lists, too,
// unless the list replaces an object.
func Merge(object, patch map[string]any) {
	for key, value := range patch {
		current := object[key]
		switch {
		case value == nil:
			delete(object, key)
		case current == nil:
			object[key] = withoutNulls(value)
		default:
			object[key] = merged(current, value)
		}
	}
}

func merged(current, value any) any {
	object, isObject := current.(map[string]any)
	if !isObject {
		return withoutNulls(value)
	}
	if patch, isPatch := value.(map[string]any); isPatch {
		Merge(object, patch)
		return object
	}
	return value
}

// withoutNulls removes the fields that are null from all objects in a value.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if item == nil {
				delete(value, key)
				continue
			}
			withoutNulls(item)
		}
	case []any:
		for _, item := range value {
			withoutNulls(item)
		}
	}
	return value
}

// Equal reports whether two values are the same. Parts that two objects share take no time.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		return is && equalObjects(a, b)
	case []any:
		b, is := b.([]any)
		return is && equalLists(a, b)
	case string, int64, bool, float64, nil:
		return a == b
	default:
		return reflect.DeepEqual(a, b)
	}
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true
	}
	for key, item := range a {
		other, found := b[key]
		if !found || !Equal(item, other) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
