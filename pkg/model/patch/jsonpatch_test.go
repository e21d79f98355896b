package patch_test

import (
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

func TestJSONPatch(t *testing.T) {
	for name, test := range map[string]struct{ body, merge, want string }{
		"a new value":                             {`{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"another value":                           {`{"a":{"b":1,"c":1}}`, `{"a":{"b":2}}`, `{"a":{"b":2,"c":1}}`},
		"a removal":                               {`{"a":{"b":1,"c":1}}`, `{"a":{"b":null}}`, `{"a":{"c":1}}`},
		"keys with the signs of JSON pointers":    {`{"a/b":1,"c~d":1}`, `{"a/b":2,"c~d":null,"~1":3,"":4}`, `{"a/b":2,"~1":3,"":4}`},
		"false, zero and nothing are values":      {`{}`, `{"a":false,"b":0,"c":"","d":[]}`, `{"a":false,"b":0,"c":"","d":[]}`},
		"a list":                                  {`{"a":[1,2,3]}`, `{"a":[3,{"b":null},1,1]}`, `{"a":[3,{"b":null},1,1]}`},
		"a large number":                          {`{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740992}`},
		"a value in place of a null":              {`{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"an empty mapping in place of a scalar":   {`{"a":1}`, `{"a":{}}`, `{"a":{}}`},
		"an empty mapping among values is left":   {`{"a":{}}`, `{"a":{"b":1,"c":{}}}`, `{"a":{"b":1}}`},
		"an empty mapping that was there is kept": {`{"a":{"b":1}}`, `{"a":{"b":null}}`, `{"a":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := jsonPatched(t, decoded(t, test.body), decoded(t, test.merge)); !diff.Equal(got, decoded(t, test.want)) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestJSONPatchOfNothing(t *testing.T) {
	for name, test := range map[string]struct{ body, merge string }{
		"no object and no patch":                {`null`, `null`},
		"the same values":                       {`{"a":1,"b":[1]}`, `{"a":1.0,"b":[1]}`},
		"removals of nothing":                   {`{"a":1}`, `{"b":null,"c":{"d":null}}`},
		"empty mappings where there is nothing": {`{"a":1}`, `{"b":{},"c":{"d":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, count := jsonPatched(t, decoded(t, test.body), decoded(t, test.merge)); count > 0 {
				t.Errorf("%d operations", count)
			}
		})
	}
}

func TestOperationsNeedJSON(t *testing.T) {
	broken := m{"a": make(chan int)}
	if _, err := patch.Operations(broken, nil); err == nil {
		t.Error("no error for a broken object")
	}
	if _, err := patch.Operations(nil, broken); err == nil {
		t.Error("no error for a broken patched object")
	}
}

// FuzzJSONPatch demands that the operations lead where the merge patch leads, but
// for mappings without values.
func FuzzJSONPatch(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, left, right []byte) {
		from, merge := mappings(t, left, right)
		for _, field := range []string{"apiVersion", "kind", "metadata"} {
			delete(merge, field) // handlers may not change all of it
		}
		got, count := jsonPatched(t, from, merge)
		want := patch.ApplyMerge(from, merge)
		if !diff.Equal(populated(got), populated(want)) {
			t.Errorf("%v with %v: got %v, want %v", from, merge, got, want)
		}
		if (count == 0) != (string(encoded(t, from)) == string(encoded(t, got))) {
			t.Errorf("%v with %v: %d operations lead to %v", from, merge, count, got)
		}
	})
}

// jsonPatched applies the operations as the API server does, and counts them.
func jsonPatched(t *testing.T, body, merge m) (m, int) {
	t.Helper()
	var p patch.Patch
	p.Merge(merge)
	wanted, err := p.Applied(body)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := patch.Operations(body, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		body = m{}
	}
	parsed, err := evanphx.DecodePatch(encoded(t, operations))
	if err != nil {
		t.Fatal(err)
	}
	text, err := parsed.Apply(encoded(t, body))
	if err != nil {
		t.Fatalf("%v: %v", operations, err)
	}
	return decoded(t, string(text)), len(operations)
}
