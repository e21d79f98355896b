package object

import (
	"math"
	"reflect"
)

// Equal compares two decoded JSON values by the rules of JSON: numbers are compared by
// value, so 1 equals 1.0, and a null inside a mapping counts as absent. Go's integer types
// count as numbers, so you can write Equal(1). An Opaque decides itself what it equals.
// A nil map or list counts as null, as in encoding/json.
func Equal(a, b any) bool {
	// Pairs of the same type come first, because nearly all pairs are.
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return a == b
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return isSame(a, b) || (a == nil) == (b == nil) && sameFields(a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			return (a == nil) == (b == nil) && sameItems(a, b)
		}
	case int64:
		if b, ok := b.(int64); ok {
			return a == b
		}
	case bool:
		if b, ok := b.(bool); ok {
			return a == b
		}
	}
	return equalOthers(a, b)
}

// isSame reports whether both are one mapping, which equals itself.
func isSame(a, b map[string]any) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// sameFields compares both mappings in one pass. Comparing every field in both
// directions would double the work with every level of depth.
func sameFields(a, b map[string]any) bool {
	for key, value := range a {
		if !Equal(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, compared := a[key]; !compared && !absent(value) {
			return false
		}
	}
	return true
}

func sameItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// equalOthers compares nulls, numbers of different types, opaque values, and values that
// are not decoded JSON.
func equalOthers(a, b any) bool {
	if absent(a) || absent(b) {
		return absent(a) && absent(b)
	}
	if opaque, ok := a.(Opaque); ok {
		return opaque.EqualTo(b)
	}
	if opaque, ok := b.(Opaque); ok {
		return opaque.EqualTo(a)
	}
	if x, ok := toNumber(a); ok {
		y, ok := toNumber(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

// absent reports whether the value is a null.
func absent(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return value == nil
	case []any:
		return value == nil
	}
	return false
}

// number is a number that can be compared by value with ==. Whole numbers are separate
// from others, because a float64 would round large ones.
type number struct {
	isWhole bool
	whole   int64
	float   float64
}

func toNumber(value any) (number, bool) {
	switch n := value.(type) {
	case int64: // the most common type
		return number{isWhole: true, whole: n}, true
	case float64:
		return numberFromFloat(n), true
	}
	switch n := reflect.ValueOf(value); {
	case n.CanInt():
		return number{isWhole: true, whole: n.Int()}, true
	case n.CanUint():
		return numberFromUint(n.Uint()), true
	case n.CanFloat():
		return numberFromFloat(n.Float()), true
	}
	return number{}, false
}

func numberFromUint(n uint64) number {
	if n <= math.MaxInt64 {
		return number{isWhole: true, whole: int64(n)}
	}
	return number{float: float64(n)}
}

func numberFromFloat(n float64) number {
	if n == math.Trunc(n) && n >= math.MinInt64 && n < math.MaxInt64 {
		return number{isWhole: true, whole: int64(n)}
	}
	return number{float: n}
}
