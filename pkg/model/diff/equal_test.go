package diff_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
)

func TestEqual(t *testing.T) {
	for name, test := range map[string]struct {
		a, b any
		want bool
	}{
		"a whole number equals the same number as a float": {int64(1), 1.0, true},
		"a number differs from the next one":               {int64(1), 1.5, false},
		"Go's own integers are numbers":                    {1, int32(1), true},
		"Go's small floats are numbers":                    {float32(0.5), 0.5, true},
		"large numbers are not rounded":                    {int64(1)<<53 + 1, float64(1 << 53), false},
		"the largest integer is not equal to its float":    {int64(1<<63 - 1), float64(1 << 63), false},
		"numbers beyond the integers are floats":           {1e300, 1e300, true},
		"a boolean is not a number":                        {true, int64(1), false},
		"a string is not a number":                         {"1", int64(1), false},
		"a string is not a boolean":                        {"true", true, false},
		"null equals null":                                 {nil, nil, true},
		"null is not false":                                {nil, false, false},
		"null is not the empty string":                     {nil, "", false},
		"null is not an empty mapping":                     {nil, m{}, false},
		"a nil mapping is null":                            {m(nil), nil, true},
		"a nil mapping is not an empty one":                {m(nil), m{}, false},
		"a nil list is not an empty one":                   {[]any(nil), []any{}, false},
		"a null in a mapping is absent":                    {m{"a": nil}, m{"b": nil}, true},
		"a null in a mapping in a list is absent":          {[]any{m{"a": nil}}, []any{m{}}, true},
		"a null in a list is an item":                      {[]any{nil}, []any{}, false},
		"mappings differ by value":                         {m{"a": "x"}, m{"a": "y"}, false},
		"mappings differ by key":                           {m{"a": "x"}, m{"b": "x"}, false},
		"lists differ by order":                            {[]any{"x", "y"}, []any{"y", "x"}, false},
		"a mapping is not a list":                          {m{}, []any{}, false},
		"an unknown value may be equal":                    {hashed{"x"}, "x", true},
		"an unknown value may differ":                      {hashed{"x"}, "y", false},
		"an unknown value in a list is asked too":          {[]any{hashed{int64(1)}}, []any{1.0}, true},
		"values that are not JSON are compared directly":   {[]string{"x"}, []string{"x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if diff.Equal(test.a, test.b) != test.want || diff.Equal(test.b, test.a) != test.want {
				t.Errorf("%#v and %#v: want %v both ways", test.a, test.b, test.want)
			}
		})
	}
}

func TestEqualAgreesWithCompute(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		a, b := randomValue(random, 2), randomValue(random, 2)
		items := diff.Compute(a, b, diff.Full)
		if diff.Equal(a, b) != (len(items) == 0) {
			t.Fatalf("%#v and %#v: %v", a, b, items)
		}
	}
}
