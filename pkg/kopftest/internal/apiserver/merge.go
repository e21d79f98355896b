package apiserver

// mergeInto applies a merge patch to a document, as the library that the API server uses does it
// with texts: lists of a patch keep their nulls if they replace an object.
func mergeInto(document, patch map[string]any) {
	for name, value := range patch {
		if value == nil {
			delete(document, name)
			continue
		}
		current := document[name]
		inner, isObject := current.(map[string]any)
		changes, isPatch := value.(map[string]any)
		switch {
		case isObject && isPatch:
			mergeInto(inner, changes)
		case isObject:
			document[name] = value
		default:
			document[name] = withoutNulls(value)
		}
	}
}

// withoutNulls removes the nulls in objects. Lists keep theirs.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			} else {
				value[name] = withoutNulls(inner)
			}
		}
	case []any:
		for i, inner := range value {
			value[i] = withoutNulls(inner)
		}
	}
	return value
}
