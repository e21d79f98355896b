package object

import (
	"encoding/json"
	"reflect"
	"testing"
)

// names has what a snapshot provides without decoding.
type names struct{ name, namespace, uid, resourceVersion string }

func TestHeaderIsReadWithoutDecoding(t *testing.T) {
	tests := map[string]struct {
		text string
		want names
		json string
	}{
		"everything is there": {
			`{"kind":"A","metadata":{"name":"n","namespace":"s","resourceVersion":"7","uid":"u"},"spec":{"name":"x"}}`,
			names{name: "n", namespace: "s", uid: "u", resourceVersion: "7"},
			`{"kind":"A","metadata":{"name":"n","namespace":"s","resourceVersion":"7","uid":"u"},"spec":{"name":"x"}}`,
		},
		"nothing is there":          {`{}`, names{}, `{}`},
		"metadata is no mapping":    {`{"metadata":[{"name":"n"}]}`, names{}, `{"metadata":[{"name":"n"}]}`},
		"metadata is a null":        {`{"metadata":null}`, names{}, `{"metadata":null}`},
		"fields of the same name":   {`{"a":{"name":"x"},"metadata":{"labels":{"uid":"y"},"name":"n"}}`, names{name: "n"}, `{"a":{"name":"x"},"metadata":{"labels":{"uid":"y"},"name":"n"}}`},
		"a number for a name":       {`{"metadata":{"name":12}}`, names{name: "12"}, `{"metadata":{"name":12}}`},
		"a null for a name":         {`{"metadata":{"name":null}}`, names{}, `{"metadata":{"name":null}}`},
		"an escape in the name":     {`{"metadata":{"name":"a\"\\\u00e9"}}`, names{name: "a\"\\é"}, `{"metadata":{"name":"a\"\\\u00e9"}}`},
		"quotes and braces in text": {`{"metadata":{"annotations":{"a":"{\"}\\"},"name":"n"}}`, names{name: "n"}, `{"metadata":{"annotations":{"a":"{\"}\\"},"name":"n"}}`},
		"managedFields in between":  {`{"metadata":{"labels":{},"managedFields":[{"a":"]"}],"name":"n"}}`, names{name: "n"}, `{"metadata":{"labels":{},"name":"n"}}`},
		"managedFields first":       {`{"metadata":{"managedFields":[{}],"name":"n"}}`, names{name: "n"}, `{"metadata":{"name":"n"}}`},
		"managedFields last":        {`{"metadata":{"name":"n","managedFields":[{}]}}`, names{name: "n"}, `{"metadata":{"name":"n"}}`},
		"managedFields alone":       {`{"metadata":{"managedFields":[{}]}}`, names{}, `{"metadata":{}}`},
		"pretty text": {
			"\n{ \"metadata\" : {\n \"managedFields\" : [ ] ,\n \"name\" : \"n\" } ,\n \"spec\" : 1.5e3 }\n",
			names{name: "n"},
			`{"metadata":{"name":"n"},"spec":1.5e3}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSnapshot([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			got := names{name: s.GetName(), namespace: s.GetNamespace(), uid: string(s.GetUID()), resourceVersion: s.GetResourceVersion()}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if string(s.json()) != test.json || s.Size() != len(test.json) {
				t.Errorf("kept %s, %d bytes, want %s", s.json(), s.Size(), test.json)
			}
		})
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add(`{"kind":"A","metadata":{"labels":{"a":"{\"}"},"managedFields":[{"f:a":{}}],"name":"n"},"spec":[1e3,null,true]}`)
	f.Add(` {"metadata" : {"managedFields":[{"a":"\\\""}] , "name":"\"" } } `)
	f.Add(`{"a":[{},[]],"metadata":{"managedFields":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseSnapshot([]byte(text)); err != nil {
			return
		}
		// Repeated keys are removed, because readers disagree about them.
		var want map[string]any
		if json.Unmarshal([]byte(text), &want) != nil {
			return // the API server validates UTF-8
		}
		unique, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := ParseSnapshot(unique)
		if err != nil {
			t.Fatalf("%s: %v", unique, err)
		}
		if metadata, ok := want["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
			if name, ok := metadata["name"].(string); ok && name != snapshot.GetName() {
				t.Errorf("%s: the name is %q, got %q", unique, name, snapshot.GetName())
			}
		}
		var got map[string]any
		if err := json.Unmarshal(snapshot.json(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %s (%v)", unique, snapshot.json(), err)
		}
	})
}
