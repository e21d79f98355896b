package storage_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		change func(storage.Patch)
		after  string
	}{
		"sets a field in an empty patch":        {`{}`, func(p storage.Patch) { p.Set(object.Path{"a", "b"}, 1) }, `{"a": {"b": 1}}`},
		"sets a field next to others":           {`{"a": {"c": 2}}`, func(p storage.Patch) { p.Set(object.Path{"a", "b"}, 1) }, `{"a": {"b": 1, "c": 2}}`},
		"sets a field in place of a null":       {`{"a": null}`, func(p storage.Patch) { p.Set(object.Path{"a", "b"}, 1) }, `{"a": {"b": 1}}`},
		"sets a null":                           {`{}`, func(p storage.Patch) { p.Set(object.Path{"a"}, nil) }, `{"a": null}`},
		"drops a field and what becomes empty":  {`{"a": {"b": {"c": 1}}}`, func(p storage.Patch) { p.Drop(object.Path{"a", "b", "c"}) }, `{}`},
		"drops a field and keeps others":        {`{"a": {"b": null, "c": 1}}`, func(p storage.Patch) { p.Drop(object.Path{"a", "b"}) }, `{"a": {"c": 1}}`},
		"ignores a drop of an absent field":     {`{"a": 1}`, func(p storage.Patch) { p.Drop(object.Path{"a", "b"}); p.Drop(object.Path{"c"}) }, `{"a": 1}`},
		"ignores an empty path":                 {`{"a": 1}`, func(p storage.Patch) { p.Drop(nil); p.Set(nil, 1) }, `{"a": 1}`},
		"drops an empty mapping with the field": {`{"a": {}}`, func(p storage.Patch) { p.Drop(object.Path{"a", "b"}) }, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch := storage.Patch(decoded(t, test.before))
			test.change(patch)
			got := map[string]any(patch)
			if want := decoded(t, test.after); !object.Equal(got, want) || len(got) != len(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
