package object_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestNormalize(t *testing.T) {
	type inner struct {
		Size int     `json:"size,omitempty"`
		Name *string `json:"name"`
	}
	tests := map[string]struct{ value, want any }{
		"a null":                         {nil, nil},
		"a text":                         {"ü", "ü"},
		"a number of Go":                 {1, int64(1)},
		"another one":                    {uint16(1), int64(1)},
		"a number too large for a whole": {uint64(math.MaxUint64), float64(math.MaxUint64)},
		"a fraction":                     {0.5, 0.5},
		"a short fraction":               {float32(0.5), 0.5},
		"a whole number with a point":    {2.0, 2.0},
		"a duration":                     {time.Second, int64(1_000_000_000)},
		"a time of Kubernetes":           {metav1.Unix(0, 0).UTC(), "1970-01-01T00:00:00Z"},
		"bytes":                          {[]byte("a"), "YQ=="},
		"a struct":                       {inner{Size: 1}, map[string]any{"size": int64(1), "name": nil}},
		"a pointer to a struct":          {&inner{}, map[string]any{"name": nil}},
		"a nil pointer":                  {(*inner)(nil), nil},
		"a nil mapping":                  {map[string]any(nil), nil},
		"a nil list":                     {[]any(nil), nil},
		"a nil mapping inside":           {map[string]any{"a": map[string]any(nil)}, map[string]any{"a": nil}},
		"texts":                          {[]string{"a"}, []any{"a"}},
		"a map of numbers":               {map[string]int{"a": 1}, map[string]any{"a": int64(1)}},
		"a mapping with a struct in it":  {map[string]any{"a": []any{inner{Size: 1}}}, map[string]any{"a": []any{map[string]any{"size": int64(1), "name": nil}}}},
		"a decoded mapping":              {map[string]any{"a": []any{int64(1), 0.5, true, nil, "b"}}, map[string]any{"a": []any{int64(1), 0.5, true, nil, "b"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := object.Normalize(test.value)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, test.want)
			}
		})
	}
}

func TestNormalizeRejectsNonJSONValues(t *testing.T) {
	endless := map[string]any{}
	endless["self"] = []any{endless}
	tests := map[string]struct {
		value any
		want  string
	}{
		"a channel":                  {make(chan int), "of type chan int"},
		"a function in a mapping":    {map[string]any{"a": func() {}}, "of type map[string]interface {}"},
		"not a number":               {math.NaN(), "of type float64"},
		"infinity in a list":         {[]any{math.Inf(1)}, "of type []interface {}"},
		"a mapping inside itself":    {endless, "cycle"},
		"keys that cannot be texts":  {map[bool]int{true: 1}, "of type map[bool]int"},
		"a type that fails to write": {failing{}, "out of ink"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := object.Normalize(test.value)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want %q in it", got, err, test.want)
			}
		})
	}
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errInk{} }

type errInk struct{}

func (errInk) Error() string { return "out of ink" }

func TestNormalizeCopiesItsInput(t *testing.T) {
	value := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	got, err := object.Normalize(value)
	if err != nil {
		t.Fatal(err)
	}
	value["a"].([]any)[0].(map[string]any)["b"] = "changed"
	if want := (map[string]any{"a": []any{map[string]any{"b": "c"}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
