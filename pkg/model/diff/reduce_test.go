package diff_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/json"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestReduce(t *testing.T) {
	for name, test := range map[string]struct {
		before, after any
		path          object.Path
		want          diff.Diff
	}{
		"items inside the field get relative paths": {
			m{"spec": m{"a": m{"x": "1"}}},
			m{"spec": m{"a": m{"x": "2"}}},
			object.Path{"spec", "a"},
			diff.Diff{{diff.Change, object.Path{"x"}, "1", "2"}},
		},
		"the item of the field itself has an empty path": {
			m{"spec": m{"a": "1"}},
			m{"spec": m{}},
			object.Path{"spec", "a"},
			diff.Diff{{diff.Remove, object.Path{}, "1", nil}},
		},
		"unrelated items are left out": {
			m{"spec": m{"a": "1"}}, m{"spec": m{"a": "2"}}, object.Path{"spec", "b"}, nil,
		},
		"keys that only begin alike are unrelated": {
			m{"spec": m{"ab": "1"}}, m{"spec": m{"ab": "2"}}, object.Path{"spec", "a"}, nil,
		},
		"an empty path keeps everything": {
			m{"a": "1"},
			m{"a": "2"},
			object.Path{},
			diff.Diff{{diff.Change, object.Path{"a"}, "1", "2"}},
		},
		"a field of an added mapping was added": {
			m{},
			m{"spec": m{"a": "1"}},
			object.Path{"spec", "a"},
			diff.Diff{{diff.Add, object.Path{}, nil, "1"}},
		},
		"a field that an added mapping lacks was not added": {
			m{}, m{"spec": m{"a": "1"}}, object.Path{"spec", "b"}, nil,
		},
		"a field of an added object was added": {
			nil,
			m{"spec": m{"a": "1"}},
			object.Path{"spec"},
			diff.Diff{{diff.Add, object.Path{}, nil, m{"a": "1"}}},
		},
		"a field of a mapping that became a list was removed": {
			m{"spec": m{"a": "1"}},
			m{"spec": []any{"a"}},
			object.Path{"spec", "a"},
			diff.Diff{{diff.Remove, object.Path{}, "1", nil}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := diff.Compute(test.before, test.after, diff.Full)
			if got := whole.Reduce(test.path); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v of %v: got %v, want %v", test.path, whole, got, test.want)
			}
		})
	}
}

// FuzzReduce compares the two ways to compute the differences of a field.
func FuzzReduce(f *testing.F) {
	f.Add([]byte(`{"spec":{"a":1}}`), []byte(`{"spec":{"a":1.5,"b":{}}}`), "spec.a")
	f.Add([]byte(`null`), []byte(`{"spec":{"a":null}}`), "spec")
	f.Add([]byte(`{"spec":[{"a":1}]}`), []byte(`{"spec":{"a":{"b":true}}}`), "spec.a.b")
	f.Fuzz(func(t *testing.T, left, right []byte, dotted string) {
		var before, after any
		path, err := object.ParsePath(dotted)
		if err != nil || decode(left, &before) != nil || decode(right, &after) != nil {
			t.Skip()
		}
		oldField, _ := object.Lookup(before, path)
		newField, _ := object.Lookup(after, path)
		want := diff.Compute(oldField, newField, diff.Full)
		got := diff.Compute(before, after, diff.Full).Reduce(path)
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", dotted, got, want)
		}
	})
}

func decode(data []byte, into any) error { return json.UnmarshalCaseSensitivePreserveInts(data, into) }

// Calling a handler of a field once too often is better than not calling it.
func TestFieldInsideAnUnknownValueMayHaveChanged(t *testing.T) {
	whole := diff.Compute(m{"spec": hashed{m{}}}, m{"spec": m{"a": "1"}}, diff.Full)
	reduced := whole.Reduce(object.Path{"spec", "a"})
	if len(reduced) != 1 || reduced[0].Op != diff.Change || reduced[0].New != "1" {
		t.Fatalf("got %v, want one change", reduced)
	}
	if _, unknown := reduced[0].Old.(object.Opaque); !unknown {
		t.Errorf("the old value is %v, and should be unknown", reduced[0].Old)
	}
}
