package apiserver

import (
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/json"
)

// The API server merges texts. Merging values has the same outcome.
func TestMergesAreThoseOfTexts(t *testing.T) {
	documents := []string{`{}`, `{"a":1,"b":{"c":2}}`, `{"a":{"b":1}}`, `{"a":[1]}`, `{"a":null}`, `{"a":"text"}`, `{"a":{"c":[null,{"d":null}]},"b":1}`}
	patches := []string{
		`{}`, `{"a":null,"b":{"c":null,"d":{"e":null,"f":1}}}`, `{"a":[{"c":null},null,{"d":{"e":null}}]}`,
		`{"a":[{"c":null},null,[{"d":null}]]}`, `{"a":{"b":null}}`, `{"a":{"b":null,"c":1.5}}`, `{"b":{}}`, `{"a":{"c":[{"d":null}]}}`, `{"a":7}`,
	}
	for _, document := range documents {
		for _, patch := range patches {
			var got, changes, want map[string]any
			read(t, document, &got)
			read(t, patch, &changes)
			merged, err := jsonpatch.MergePatch([]byte(document), []byte(patch))
			if err != nil {
				t.Fatal(err)
			}
			read(t, string(merged), &want)
			if mergeInto(got, changes); !reflect.DeepEqual(got, want) {
				t.Errorf("%s and %s: got %v, want %v", document, patch, got, want)
			}
		}
	}
}

func read(t *testing.T, text string, into *map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
