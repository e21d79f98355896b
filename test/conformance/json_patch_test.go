package conformance

import (
	"encoding/json"
	"reflect"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"

	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestJSONPatch(t *testing.T) {
	type input struct {
		Body       map[string]any `json:"body"`
		MergePatch map[string]any `json:"mergePatch"`
	}
	type expect struct {
		Empty         bool           `json:"empty"`
		ResultingBody map[string]any `json:"resultingBody"`
	}
	for _, v := range load[input, expect](t, "json_patch") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "json_patch", v.Name) {
				return
			}
			var wanted patch.Patch
			wanted.Merge(v.Input.MergePatch)
			after, err := wanted.Applied(v.Input.Body)
			if err != nil {
				t.Fatal(err)
			}
			operations, err := patch.Operations(v.Input.Body, after)
			if err != nil {
				t.Fatal(err)
			}
			if (len(operations) == 0) != v.Expect.Empty {
				t.Errorf("got %v, want none: %v", operations, v.Expect.Empty)
			}
			// Compare exactly, because nulls are values in a JSON patch.
			if got := afterOperations(t, v.Input.Body, operations); !reflect.DeepEqual(got, plainJSON(t, v.Expect.ResultingBody)) {
				t.Errorf("%v lead to %v, want %v", operations, got, v.Expect.ResultingBody)
			}
		})
	}
}

// afterOperations returns the body after an API server has applied the operations.
func afterOperations(t *testing.T, body, operations any) any {
	t.Helper()
	encodedBody, encodedPatch := encodeJSON(t, body), encodeJSON(t, operations)
	parsed, err := evanphx.DecodePatch(encodedPatch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := parsed.Apply(encodedBody)
	if err != nil {
		t.Fatal(err)
	}
	return plainJSON(t, json.RawMessage(text))
}

// plainJSON converts all numbers to the same Go type.
func plainJSON(t *testing.T, value any) any {
	t.Helper()
	var decoded any
	if err := json.Unmarshal(encodeJSON(t, value), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func encodeJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
