package object_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestValueAccessors(t *testing.T) {
	tests := map[string]struct {
		value  any
		exists bool
		known  bool
		any    any
		text   string
		shown  string
	}{
		"nothing":                  {nil, false, true, nil, "", "(absent)"},
		"a text":                   {"a", true, true, "a", "a", "a"},
		"an empty text":            {"", true, true, "", "", ""},
		"a number":                 {int64(1), true, true, int64(1), "", "1"},
		"a mapping":                {map[string]any{"a": "b"}, true, true, map[string]any{"a": "b"}, "", "map[a:b]"},
		"a hash":                   {opaque{"a"}, true, false, nil, "", "(unknown)"},
		"a mapping with a hash":    {map[string]any{"a": opaque{1}, "b": "c"}, true, false, nil, "", "(unknown)"},
		"a hash far inside":        {map[string]any{"a": map[string]any{"b": opaque{1}}}, true, false, nil, "", "(unknown)"},
		"a mapping of nothing yet": {map[string]any{}, true, true, map[string]any{}, "", "map[]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := object.NewValue(test.value)
			text, isText := v.Text()
			_, want := test.value.(string)
			if v.Exists() != test.exists || v.Known() != test.known || text != test.text || isText != want || v.String() != test.shown {
				t.Errorf("got %v, %v, %q, %q", v.Exists(), v.Known(), text, v)
			}
			if !reflect.DeepEqual(v.Any(), test.any) {
				t.Errorf("got %v, want %v", v.Any(), test.any)
			}
		})
	}
}

func TestValueIsReadByItsType(t *testing.T) {
	type all struct {
		Bool    bool
		IsBool  bool
		Int     int64
		IsInt   bool
		Float   float64
		IsFloat bool
		Strings []string
		IsList  bool
	}
	tests := map[string]struct {
		value any
		want  all
	}{
		"nothing":                {nil, all{}},
		"true":                   {true, all{Bool: true, IsBool: true}},
		"false":                  {false, all{IsBool: true}},
		"a whole number":         {int64(3), all{Int: 3, IsInt: true, Float: 3, IsFloat: true}},
		"a whole floating point": {3.0, all{Int: 3, IsInt: true, Float: 3, IsFloat: true}},
		"a fraction":             {1.5, all{Float: 1.5, IsFloat: true}},
		"a number in a text":     {"3", all{}},
		"a list of texts":        {[]any{"a", "b"}, all{Strings: []string{"a", "b"}, IsList: true}},
		"an empty list":          {[]any{}, all{Strings: []string{}, IsList: true}},
		"a mixed list":           {[]any{"a", int64(1)}, all{}},
		"a hash":                 {opaque{true}, all{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got all
			v := object.NewValue(test.value)
			got.Bool, got.IsBool = v.Bool()
			got.Int, got.IsInt = v.Int64()
			got.Float, got.IsFloat = v.Float64()
			got.Strings, got.IsList = v.Strings()
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestValueIsComparedAsJSON(t *testing.T) {
	tests := map[string]struct {
		value, other any
		want         bool
	}{
		"a number by its value":           {int64(1), 1.0, true},
		"a hash with what it was made of": {opaque{map[string]any{"a": int64(1)}}, map[string]any{"a": 1.0}, true},
		"a hash with something else":      {opaque{"a"}, "b", false},
		"a hash with nothing":             {opaque{"a"}, nil, false},
		"something with a hash":           {"a", opaque{"a"}, true},
		"a mapping with a hash in it":     {map[string]any{"a": opaque{"b"}}, map[string]any{"a": "b"}, true},
		"nothing with nothing":            {nil, nil, true},
		"nothing with a nil mapping":      {nil, map[string]any(nil), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := object.NewValue(test.value).Equals(test.other); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestValueIsDecoded(t *testing.T) {
	into := map[string]int{"kept": 1}
	if err := object.NewValue(map[string]any{"a": int64(2)}).Decode(&into); err != nil || into["a"] != 2 || into["kept"] != 1 {
		t.Errorf("got %v, %v", into, err)
	}
	if err := object.NewValue(nil).Decode(&into); err != nil || len(into) != 2 {
		t.Errorf("nothing made %v, %v", into, err)
	}
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"of another type":    {"text", "the value does not fit *map[string]int"},
		"only known by hash": {map[string]any{"a": opaque{1}}, "only a hash of the value is stored: it can be compared, but not read"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := object.NewValue(test.value).Decode(&into); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// The Go type of the whole can be long.
func TestFieldOfAnotherTypeIsNamed(t *testing.T) {
	var into struct {
		Text string `json:"text"`
		In   struct {
			Replicas int32 `json:"replicas"`
		} `json:"in"`
	}
	err := object.NewValue(map[string]any{"in": map[string]any{"replicas": int64(3000000000)}}).Decode(&into)
	var misfit *json.UnmarshalTypeError
	if want := `the value does not fit: the field "in.replicas" has the number 3000000000, which is no int32`; err == nil || err.Error() != want || !errors.As(err, &misfit) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestValueOpensItsMapping(t *testing.T) {
	if text, ok := object.NewValue(map[string]any{"a": "b"}).View().String("a"); !ok || text != "b" {
		t.Errorf("got %q, %v", text, ok)
	}
	for name, value := range map[string]any{"of a text": "a", "of nothing": nil, "of a hash": opaque{map[string]any{"a": "b"}}} {
		t.Run(name, func(t *testing.T) {
			if n := object.NewValue(value).View().Len(); n != 0 {
				t.Errorf("got %d fields", n)
			}
		})
	}
}
