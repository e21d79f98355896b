package patch_test

import (
	"reflect"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestMinimal(t *testing.T) {
	for name, test := range map[string]struct{ body, merge, want string }{
		"nothing":                               {`{"a":1}`, `{}`, `null`},
		"values that are there already":         {`{"a":1,"b":{"c":"x"}}`, `{"a":1.0,"b":{"c":"x"}}`, `null`},
		"only the ones that are not":            {`{"a":1,"b":{"c":"x","d":"x"}}`, `{"a":1,"b":{"c":"x","d":"y"}}`, `{"b":{"d":"y"}}`},
		"a removal of something":                {`{"a":1}`, `{"a":null}`, `{"a":null}`},
		"a removal of nothing":                  {`{}`, `{"a":null}`, `null`},
		"a removal of a null":                   {`{"a":null}`, `{"a":null}`, `null`},
		"removals in nothing":                   {`{}`, `{"a":{"b":null,"c":{"d":null}}}`, `null`},
		"removals next to values in nothing":    {`{}`, `{"a":{"b":null,"c":{"d":null},"e":1}}`, `{"a":{"e":1}}`},
		"an empty mapping in nothing":           {`{}`, `{"a":{"b":{}}}`, `{"a":{"b":{}}}`},
		"an empty mapping over another one":     {`{"a":{"b":1}}`, `{"a":{}}`, `null`},
		"an empty mapping over a scalar":        {`{"a":1}`, `{"a":{"b":null}}`, `{"a":{}}`},
		"a scalar over a mapping":               {`{"a":{"b":1}}`, `{"a":1}`, `{"a":1}`},
		"a list that is the same":               {`{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`, `null`},
		"a list that differs counts as a whole": {`{"a":[{"b":1},{}]}`, `{"a":[{"b":1}]}`, `{"a":[{"b":1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := patch.Minimal(decoded(t, test.body), decoded(t, test.merge))
			if want := decoded(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestMinimalOfSeveral(t *testing.T) {
	for name, test := range map[string]struct {
		merges []string
		want   string
	}{
		"none":                                      {nil, `null`},
		"a later removal goes through":              {[]string{`{"b":2}`, `{"a":null}`}, `{"a":null,"b":2}`},
		"a later removal undoes a value":            {[]string{`{"b":2}`, `{"b":null}`}, `null`},
		"a later value undoes a removal":            {[]string{`{"a":null}`, `{"a":{"x":1}}`}, `null`},
		"a mapping after its removal starts anew":   {[]string{`{"a":null}`, `{"a":{"y":1}}`}, `{"a":{"x":null,"y":1}}`},
		"removals in nothing make nothing":          {[]string{`{"b":2}`, `{"c":{"d":null}}`}, `{"b":2}`},
		"mappings of both are merged into each one": {[]string{`{"a":{"y":1}}`, `{"a":{"z":1}}`}, `{"a":{"y":1,"z":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			merges := make([]m, len(test.merges))
			for i, merge := range test.merges {
				merges[i] = decoded(t, merge)
			}
			got := patch.Minimal(m{"a": m{"x": int64(1)}}, merges...)
			if want := decoded(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// FuzzMinimal checks that the minimal patch has the same effect as the entire patch,
// except for mappings created only for removals, and that it is complete.
func FuzzMinimal(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, left, right []byte) {
		from, merge := mappings(t, left, right)
		minimal := patch.Minimal(from, merge)
		got, want := patch.ApplyMerge(from, minimal), patch.ApplyMerge(from, merge)
		if !diff.Equal(populated(got), populated(want)) {
			t.Errorf("%v with %v: %v leads to %v, not %v", from, merge, minimal, got, want)
		}
		if again := patch.Minimal(got, merge); again != nil {
			t.Errorf("%v with %v: then still %v", from, merge, again)
		}
		if several := patch.Minimal(from, merge, merge); !diff.Equal(several, minimal) {
			t.Errorf("%v with %v: once %v, twice %v", from, merge, minimal, several)
		}
	})
}

// populated returns the mapping without nulls and empty mappings outside lists.
func populated(mapping m) m {
	kept := m{}
	for key, value := range mapping {
		if inner, ok := value.(m); ok {
			if inner = populated(inner); len(inner) > 0 {
				kept[key] = inner
			}
		} else if value != nil {
			kept[key] = value
		}
	}
	return kept
}
