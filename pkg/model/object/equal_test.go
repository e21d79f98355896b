package object_test

import (
	"math"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// States are compared with themselves where nothing has changed, so this costs nothing.
func TestAMappingEqualsItselfUnseen(t *testing.T) {
	values := map[string]any{"a": math.NaN()} // which does not equal itself
	if !object.Equal(values, values) || object.Equal(values, map[string]any{"a": math.NaN()}) {
		t.Error("the values were compared")
	}
}

func TestEqual(t *testing.T) {
	type m = map[string]any
	tests := map[string]struct {
		a, b any
		want bool
	}{
		"texts":                                {"a", "a", true},
		"other texts":                          {"a", "b", false},
		"booleans":                             {true, true, true},
		"a boolean and a number":               {true, int64(1), false},
		"a text and a number":                  {"1", int64(1), false},
		"whole numbers":                        {int64(1), int64(1), true},
		"a whole number and a float":           {int64(1), 1.0, true},
		"a whole number and a fraction":        {int64(1), 1.5, false},
		"large numbers that a float confuses":  {int64(9007199254740993), 9007199254740992.0, false},
		"numbers beyond the integers":          {uint64(math.MaxUint64), float64(math.MaxUint64), true},
		"not a number":                         {math.NaN(), math.NaN(), false},
		"an int and a JSON number":             {1, int64(1), true},
		"a byte and a JSON number":             {uint8(1), int64(1), true},
		"a float32 and a JSON number":          {float32(0.5), 0.5, true},
		"a named number and a JSON number":     {time.Second, int64(1_000_000_000), true},
		"nulls":                                {nil, nil, true},
		"a null and a nil mapping":             {nil, m(nil), true},
		"a nil list and a null":                {[]any(nil), nil, true},
		"a null and an empty mapping":          {nil, m{}, false},
		"a nil mapping and an empty one":       {m(nil), m{}, false},
		"a nil list and an empty one":          {[]any(nil), []any{}, false},
		"mappings":                             {m{"a": int64(1), "b": m{"c": "d"}}, m{"b": m{"c": "d"}, "a": 1.0}, true},
		"a mapping with another value":         {m{"a": int64(1)}, m{"a": int64(2)}, false},
		"a mapping with a missing key":         {m{"a": int64(1), "b": "c"}, m{"a": int64(1)}, false},
		"a mapping with an additional key":     {m{"a": int64(1)}, m{"a": int64(1), "b": "c"}, false},
		"a null in a mapping is an absent key": {m{"a": int64(1), "b": nil}, m{"a": int64(1)}, true},
		"an absent key is a null in a mapping": {m{"a": int64(1)}, m{"a": int64(1), "b": nil}, true},
		"different nulls":                      {m{"a": nil}, m{"b": nil}, true},
		"lists":                                {[]any{"a", int64(1)}, []any{"a", 1.0}, true},
		"lists in another order":               {[]any{"a", "b"}, []any{"b", "a"}, false},
		"a longer list":                        {[]any{"a"}, []any{"a", "a"}, false},
		"a null in a list is an item":          {[]any{nil}, []any{}, false},
		"a list and a mapping":                 {[]any{}, m{}, false},
		"equal values that are not JSON":       {struct{ A int }{1}, struct{ A int }{1}, true},
		"different values that are not JSON":   {struct{ A int }{1}, struct{ A int }{2}, false},
		"a hash and its value":                 {opaque{"a"}, "a", true},
		"a value and its hash":                 {"a", opaque{"a"}, true},
		"a hash and a null":                    {opaque{"a"}, nil, false},
		"a null inside and a hash":             {m{"a": nil}, m{"a": opaque{"a"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := object.Equal(test.a, test.b); got != test.want {
				t.Errorf("got %v", got)
			}
			if got := object.Equal(test.b, test.a); got != test.want {
				t.Errorf("got %v the other way round", got)
			}
		})
	}
}
