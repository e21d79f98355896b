package object_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestParsePath(t *testing.T) {
	tests := map[string]struct {
		text string
		want object.Path
	}{
		"a field":                            {"spec", object.Path{"spec"}},
		"a field in a field":                 {"spec.template.name", object.Path{"spec", "template", "name"}},
		"anything but dots":                  {"metadata.labels.b c", object.Path{"metadata", "labels", "b c"}},
		"a pointer":                          {"/spec/template/name", object.Path{"spec", "template", "name"}},
		"a pointer to a key with dots":       {"/metadata/labels/example.com~1role", object.Path{"metadata", "labels", "example.com/role"}},
		"a pointer to a key with a tilde":    {"/a/b~0c", object.Path{"a", "b~c"}},
		"a pointer to a key with an escape":  {"/a/b~01c", object.Path{"a", "b~1c"}},
		"a pointer to a key with a dot only": {"/a/b.c", object.Path{"a", "b.c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := object.ParsePath(test.text); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestInvalidPathsAreRejected(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"an empty text":        {"", `has an empty part: write it as "spec.field"`},
		"a dot at the end":     {"spec.", `field "spec." has an empty part`},
		"a dot at the start":   {".spec", `field ".spec" has an empty part`},
		"two dots":             {"spec..size", `field "spec..size" has an empty part`},
		"only a dot":           {".", `field "." has an empty part`},
		"a pointer to nothing": {"/", `field "/" has an empty part: write it as "/spec/field"`},
		"a slash at the end":   {"/spec/", `field "/spec/" has an empty part`},
		"dots that may be part of a key": {
			"metadata.labels.example.com/role", `has a slash, so the dots of its last key cannot be separators: write it as a JSON pointer`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := object.ParsePath(test.text); got != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v, want %q in it", got, err, test.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	value := map[string]any{"a": map[string]any{"b": "c", "null": nil, "list": []any{"x"}}, "hash": opaque{1}}
	tests := map[string]struct {
		path  object.Path
		want  any
		found bool
	}{
		"the whole":              {nil, value, true},
		"a field":                {object.Path{"a", "b"}, "c", true},
		"a null":                 {object.Path{"a", "null"}, nil, false},
		"an absent field":        {object.Path{"a", "x"}, nil, false},
		"beyond an absent field": {object.Path{"x", "y"}, nil, false},
		"inside a text":          {object.Path{"a", "b", "c"}, nil, false},
		"inside a list":          {object.Path{"a", "list", "0"}, nil, false},
		"a hash":                 {object.Path{"hash"}, opaque{1}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, found := object.Lookup(value, test.path)
			if !reflect.DeepEqual(got, test.want) || found != test.found {
				t.Errorf("got %v, %v", got, found)
			}
		})
	}
}

// The fields of a value that was hashed as a whole are unknown: each of them may exist,
// and equals nothing.
func TestFieldsInsideHashAreUnknown(t *testing.T) {
	inner, found := object.Lookup(map[string]any{"hash": opaque{1}}, object.Path{"hash", "a", "b"})
	value := object.NewValue(inner)
	if !found || !value.Exists() || value.Known() || value.Equals(1) || value.Equals(nil) || value.String() != "(unknown)" {
		t.Errorf("got %v, %v", value, found)
	}
}

func TestHasPrefix(t *testing.T) {
	tests := map[string]struct {
		path, prefix object.Path
		want         bool
	}{
		"itself":           {object.Path{"a", "b"}, object.Path{"a", "b"}, true},
		"above it":         {object.Path{"a", "b"}, object.Path{"a"}, true},
		"the whole":        {object.Path{"a"}, nil, true},
		"below it":         {object.Path{"a"}, object.Path{"a", "b"}, false},
		"next to it":       {object.Path{"a", "b"}, object.Path{"a", "c"}, false},
		"a part of a word": {object.Path{"spec"}, object.Path{"sp"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.path.HasPrefix(test.prefix); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
