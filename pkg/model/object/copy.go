package object

// Copy returns a deep copy of a decoded JSON value. It does not copy an Opaque, which is
// immutable.
func Copy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return copyMap(value)
	case []any:
		return copyList(value)
	default:
		return value
	}
}

func copyMap(value map[string]any) map[string]any {
	if value == nil {
		return nil
	}
	copied := make(map[string]any, len(value))
	for key, item := range value {
		copied[key] = Copy(item)
	}
	return copied
}

func copyList(value []any) []any {
	if value == nil {
		return nil
	}
	copied := make([]any, len(value))
	for i, item := range value {
		copied[i] = Copy(item)
	}
	return copied
}
