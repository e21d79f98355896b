package object_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// full is an object with all fields that a snapshot provides.
const full = `{
  "apiVersion": "kopf.dev/v1",
  "kind": "KopfExample",
  "metadata": {
    "name": "example",
    "namespace": "ns",
    "generateName": "exam-",
    "uid": "u-1",
    "resourceVersion": "7",
    "generation": 3,
    "creationTimestamp": "2020-12-31T23:59:59Z",
    "deletionTimestamp": "2021-01-01T00:00:01Z",
    "deletionGracePeriodSeconds": 30,
    "labels": {"app": "demo", "example.com/role": "db"},
    "annotations": {"note": "naïve ☃ 😀"},
    "finalizers": ["a.dev/one", "b.dev/two"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-0"}],
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
  },
  "spec": {"size": 1, "ratio": 0.5, "on": true, "none": null, "list": ["a", "b"]},
  "status": {"phase": "Ready"}
}
`

func parse(t testing.TB, text string) *object.Snapshot {
	t.Helper()
	snapshot, err := object.ParseSnapshot([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestSnapshotMetadata(t *testing.T) {
	s := parse(t, full)
	meta := s.GetObjectMeta()
	tests := map[string]struct{ got, want any }{
		"name":                      {s.GetName(), "example"},
		"namespace":                 {s.GetNamespace(), "ns"},
		"uid":                       {string(s.GetUID()), "u-1"},
		"version":                   {s.GetResourceVersion(), "7"},
		"deletion":                  {s.Deleting(), true},
		"name for caches":           {meta.GetName(), "example"},
		"namespace for caches":      {meta.GetNamespace(), "ns"},
		"uid for caches":            {string(meta.GetUID()), "u-1"},
		"version for caches":        {meta.GetResourceVersion(), "7"},
		"labels for caches":         {meta.GetLabels(), map[string]string{"app": "demo", "example.com/role": "db"}},
		"annotations for caches":    {meta.GetAnnotations(), map[string]string{"note": "naïve ☃ 😀"}},
		"group and kind":            {s.GetObjectKind().GroupVersionKind(), schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: "KopfExample"}},
		"copy, the snapshot itself": {s.DeepCopyObject(), s},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
}

func TestSnapshotWithoutMetadata(t *testing.T) {
	tests := map[string]string{
		"an empty mapping":       `{}`,
		"no metadata":            `{"kind":"A"}`,
		"empty metadata":         `{"metadata":{}}`,
		"metadata is null":       `{"metadata":null}`,
		"metadata is a string":   `{"metadata":"a"}`,
		"metadata of nulls":      `{"metadata":{"name":null,"uid":null,"labels":null,"deletionTimestamp":null}}`,
		"fields of a wrong type": `{"metadata":{"labels":[1],"annotations":"a"}}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			s := parse(t, text)
			meta := s.GetObjectMeta()
			if s.GetName() != "" || s.GetNamespace() != "" || s.GetUID() != "" || s.GetResourceVersion() != "" || s.Deleting() ||
				len(meta.GetLabels()) != 0 || len(meta.GetAnnotations()) != 0 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestOnlyMappingsAreObjects(t *testing.T) {
	tests := map[string]string{
		"nothing":           "",
		"spaces":            " \n ",
		"a null":            "null",
		"a list":            `[{"metadata":{}}]`,
		"a text":            `"metadata"`,
		"a number":          "1",
		"a cut object":      `{"metadata":{"name":"a"`,
		"two objects":       `{"a":1}{"b":2}`,
		"an HTML page":      "<html><body>502 Bad Gateway</body></html>",
		"control character": "{\"a\":\"\x01\"}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot, err := object.ParseSnapshot([]byte(text))
			if err == nil || !strings.Contains(err.Error(), "expected a JSON object") {
				t.Errorf("got %v, %v", snapshot, err)
			}
		})
	}
}

func TestErrorQuotesOnlyTheBeginning(t *testing.T) {
	_, err := object.ParseSnapshot([]byte("<html>" + strings.Repeat("secret ", 100)))
	if err == nil || len(err.Error()) > 120 {
		t.Errorf("got %v", err)
	}
}

func TestSnapshotIsCompact(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"managed fields are left out": {
			`{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}`, `{"metadata":{"name":"a"},"spec":{}}`,
		},
		"fields of this name elsewhere are kept": {
			`{"spec":{"managedFields":1},"managedFields":2}`, `{"spec":{"managedFields":1},"managedFields":2}`,
		},
		"lines and their indentation are left out": {
			"{\n  \"spec\": {\n    \"a\": 1\n  }\n}\n", `{"spec":{"a":1}}`,
		},
		"the end of the line is left out":  {"{\"a\":1}\r\n", `{"a":1}`},
		"spaces inside texts are kept":     {"{\n\"a\":\"b  c\\n\"\n}", `{"a":"b  c\n"}`},
		"numbers stay as they are written": {`{"a":1.0,"b":1e3}`, `{"a":1.0,"b":1e3}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := parse(t, test.text)
			got, err := s.Body().JSON()
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
			if s.Size() != len(test.want) {
				t.Errorf("got the size %d, want %d", s.Size(), len(test.want))
			}
		})
	}
}

func TestSnapshotOwnsItsBytes(t *testing.T) {
	data := []byte(`{"metadata":{"name":"one"}}`)
	s, err := object.ParseSnapshot(data)
	if err != nil {
		t.Fatal(err)
	}
	copy(data, bytes.Repeat([]byte("x"), len(data)))
	text, err := s.Body().JSON()
	if err != nil || s.GetName() != "one" || string(text) != `{"metadata":{"name":"one"}}` {
		t.Errorf("got %s, %s, %v", s.GetName(), text, err)
	}
	copy(text, bytes.Repeat([]byte("x"), len(text)))
	if name, _ := s.Body().Meta().String("name"); name != "one" {
		t.Errorf("got %q after a change of the text", name)
	}
}

func TestSnapshotIsImmutable(t *testing.T) {
	s := parse(t, full)
	meta := s.GetObjectMeta()
	meta.SetName("x")
	meta.SetResourceVersion("x")
	meta.SetLabels(nil)
	s.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Kind: "Other"})
	if want := parse(t, full); !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}
