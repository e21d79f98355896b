package object_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func fields() map[string]any {
	return map[string]any{
		"text": "a", "empty": "", "yes": true, "whole": int64(7), "round": 7.0, "broken": 7.5, "nothing": nil,
		"texts": []any{"a", "b"}, "mixed": []any{"a", int64(1)}, "none": []any{},
		"map":  map[string]any{"a": "x", "b.c/d": "y", "n": int64(1), "deep": map[string]any{"z": true}},
		"hash": opaque{"secret"},
	}
}

// opaque can only be compared with other values.
type opaque struct{ value any }

func (o opaque) EqualTo(value any) bool { return object.Equal(o.value, value) }

func TestViewReturnsFieldsOfRequestedType(t *testing.T) {
	type result struct {
		value any
		ok    bool
	}
	of := func(value any, ok bool) result { return result{value, ok} }
	v := object.NewView(fields())
	tests := map[string]struct{ got, want result }{
		"a text":                         {of(v.String("text")), of("a", true)},
		"an empty text":                  {of(v.String("empty")), of("", true)},
		"a number as a text":             {of(v.String("whole")), of("", false)},
		"a text deep inside":             {of(v.String("map", "a")), of("x", true)},
		"a key with dots and slashes":    {of(v.String("map", "b.c/d")), of("y", true)},
		"a path through a text":          {of(v.String("text", "a")), of("", false)},
		"a path through nothing":         {of(v.String("absent", "a")), of("", false)},
		"a null as a text":               {of(v.String("nothing")), of("", false)},
		"a boolean":                      {of(v.Bool("yes")), of(true, true)},
		"a text as a boolean":            {of(v.Bool("text")), of(false, false)},
		"a whole number":                 {of(v.Int64("whole")), of(int64(7), true)},
		"a whole number with a point":    {of(v.Int64("round")), of(int64(7), true)},
		"a number with a fraction":       {of(v.Int64("broken")), of(int64(0), false)},
		"a boolean as a number":          {of(v.Int64("yes")), of(int64(0), false)},
		"any number":                     {of(v.Float64("broken")), of(7.5, true)},
		"a whole number as any number":   {of(v.Float64("whole")), of(7.0, true)},
		"a text as a number":             {of(v.Float64("text")), of(0.0, false)},
		"texts":                          {of(v.Strings("texts")), of([]string{"a", "b"}, true)},
		"a list of mixed types":          {of(v.Strings("mixed")), of([]string(nil), false)},
		"an empty list":                  {of(v.Strings("none")), of([]string{}, true)},
		"a list":                         {of(v.List("mixed")), of([]any{"a", int64(1)}, true)},
		"a mapping as a list":            {of(v.List("map")), of([]any(nil), false)},
		"any value":                      {of(v.Value("map", "deep")), of(map[string]any{"z": true}, true)},
		"a null as any value":            {of(v.Value("nothing")), of(nil, false)},
		"an existing field":              {of(nil, v.Has("empty")), of(nil, true)},
		"a null counts as absent":        {of(nil, v.Has("nothing")), of(nil, false)},
		"the entire view exists":         {of(nil, v.Has()), of(nil, true)},
		"a map of texts":                 {of(v.StringMap("map"), true), of(map[string]string{"a": "x", "b.c/d": "y"}, true)},
		"an absent map":                  {of(v.StringMap("absent"), true), of(map[string]string{}, true)},
		"a view in a view":               {of(v.View("map").View("deep").Bool("z")), of(true, true)},
		"a view of nothing":              {of(v.View("absent").View("deep").Bool("z")), of(false, false)},
		"a hash as a text":               {of(v.String("hash")), of("", false)},
		"a hash exists":                  {of(nil, v.Has("hash")), of(nil, true)},
		"fields inside a hash exist":     {of(nil, v.Has("hash", "inner")), of(nil, true)},
		"the keys":                       {of(v.View("map").Keys(), true), of([]string{"a", "b.c/d", "deep", "n"}, true)},
		"the number of keys":             {of(v.View("map").Len(), true), of(4, true)},
		"the keys of nothing":            {of(object.View{}.Len(), true), of(0, true)},
		"nothing as a mapping":           {of(object.View{}.Map(), true), of(map[string]any{}, true)},
		"the whole of nothing is absent": {of(object.View{}.String()), of("", false)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
}

func TestViewIsDecodedIntoTypes(t *testing.T) {
	v := object.NewView(fields())
	var inner struct {
		A    string          `json:"a"`
		N    int32           `json:"n"`
		Deep map[string]bool `json:"deep"`
	}
	if err := v.Decode(&inner, "map"); err != nil || inner.A != "x" || inner.N != 1 || !inner.Deep["z"] {
		t.Errorf("got %+v, %v", inner, err)
	}
	kept := "default"
	if err := v.Decode(&kept, "absent", "field"); err != nil || kept != "default" {
		t.Errorf("an absent field made %q, %v", kept, err)
	}
}

func TestDecodeErrorsNameTheField(t *testing.T) {
	tests := map[string]struct {
		view  object.View
		field []string
		want  []string
	}{
		"a text for a number":        {object.NewView(fields()), []string{"map", "a"}, []string{`the field "map.a"`, "does not fit *int"}},
		"a mapping for a number":     {object.NewView(map[string]any{"a": true}), nil, []string{"the mapping does not fit *int"}},
		"a hash":                     {object.NewView(fields()), []string{"hash"}, []string{`only a hash of the field "hash" is stored`}},
		"a mapping with a hash":      {object.NewView(fields()), nil, []string{"only a hash of the mapping is stored"}},
		"something that is not JSON": {object.NewView(map[string]any{"a": make(chan int)}), []string{"a"}, []string{`the field "a"`, "chan int"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var into int
			err := test.view.Decode(&into, test.field...)
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
		})
	}
}

// Reading never panics, not even for a mapping that is not decoded JSON: users write
// bodies for their tests by hand.
func TestViewWithNonJSONTypesCanBeCopied(t *testing.T) {
	v := object.NewView(map[string]any{"int": 1, "texts": []string{"a"}, "nilmap": map[string]any(nil), "nillist": []any(nil), "hash": opaque{1}})
	if got := v.Map(); !reflect.DeepEqual(got, map[string]any{
		"int": 1, "texts": []string{"a"}, "nilmap": map[string]any(nil), "nillist": []any(nil), "hash": opaque{1},
	}) {
		t.Errorf("got %v", got)
	}
	if n, ok := v.Int64("int"); !ok || n != 1 {
		t.Errorf("got %d, %v", n, ok)
	}
}

// A field is one text, or its keys. One text that is a key is that key.
func TestViewFindsFieldsByTextAndByKeys(t *testing.T) {
	v := object.NewView(map[string]any{
		"spec":           map[string]any{"size": int64(1), "a.b": "x"},
		"example.com/ro": "role", "dotted.key": "exact", "dotted": map[string]any{"key": "path"},
	})
	for want, field := range map[string][]string{
		"1": {"spec.size"}, "x": {"spec", "a.b"}, "role": {"example.com/ro"}, "exact": {"dotted.key"}, "path": {"dotted", "key"},
		"<nil>": {"spec.missing"}, "<nil> ": {"spec..size"}, "x ": {"/spec/a.b"},
	} {
		if got, _ := v.Value(field...); fmt.Sprint(got) != strings.TrimSpace(want) {
			t.Errorf("%q: got %v, want %s", field, got, want)
		}
	}
	if !v.Has("spec.size") || v.Has("spec.other") || v.View("spec").Len() != 2 {
		t.Error("a field is not found")
	}
	var size int
	if err := v.Decode(&size, "spec.size"); err != nil || size != 1 {
		t.Errorf("got %d, %v", size, err)
	}
}
