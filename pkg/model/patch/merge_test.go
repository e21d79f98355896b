package patch_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	evanphx "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// The cases for objects of RFC 7386, appendix A.
func TestApplyMergeFollowsTheStandard(t *testing.T) {
	for _, test := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got := patch.ApplyMerge(decoded(t, test[0]), decoded(t, test[1]))
		if want := decoded(t, test[2]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s with %s: got %v, want %v", test[0], test[1], got, want)
		}
	}
}

func TestApplyMergeMakesANewMapping(t *testing.T) {
	before := m{"a": m{"x": "1"}, "b": m{}}
	after := patch.ApplyMerge(before, nil)
	after["c"] = "x"
	if patch.ApplyMerge(nil, nil) == nil || !reflect.DeepEqual(before, m{"a": m{"x": "1"}, "b": m{}}) {
		t.Errorf("the body has changed: %v", before)
	}
}

func TestDifference(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"equal objects":                     {`{"a":1}`, `{"a":1.0}`, `null`},
		"an added field":                    {`{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"an added empty mapping":            {`{"a":{}}`, `{"a":{"b":{}}}`, `{"a":{"b":{}}}`},
		"a removed field":                   {`{"a":{"b":1,"c":1}}`, `{"a":{"c":1}}`, `{"a":{"b":null}}`},
		"a removed mapping":                 {`{"a":{"b":1}}`, `{}`, `{"a":null}`},
		"an emptied mapping":                {`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":null}}`},
		"a list changes as a whole":         {`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		"a scalar becomes a mapping":        {`{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"a list becomes an empty mapping":   {`{"a":[1]}`, `{"a":{}}`, `{"a":{}}`},
		"a mapping becomes a scalar":        {`{"a":{"b":1}}`, `{"a":1}`, `{"a":1}`},
		"a new null is absence":             {`{"a":1}`, `{"a":null}`, `{"a":null}`},
		"a new null in nothing is nothing":  {`{}`, `{"a":null}`, `null`},
		"an old null is absence":            {`{"a":null}`, `{}`, `null`},
		"nulls inside new mappings go":      {`{}`, `{"a":{"b":null}}`, `{"a":{}}`},
		"nulls inside lists stay":           {`{}`, `{"a":[null]}`, `{"a":[null]}`},
		"nothing to report inside mappings": {`{"a":{"b":1}}`, `{"a":{"b":1,"c":null}}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			got := patch.Difference(decoded(t, test.from), decoded(t, test.to))
			if want := decoded(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestSplitStatus(t *testing.T) {
	for name, test := range map[string]struct{ merge, main, status string }{
		"nothing":             {`{}`, `null`, `null`},
		"no status":           {`{"spec":{}}`, `{"spec":{}}`, `null`},
		"only a status":       {`{"status":{"a":1}}`, `null`, `{"status":{"a":1}}`},
		"both":                {`{"spec":{"b":1},"status":{"a":1}}`, `{"spec":{"b":1}}`, `{"status":{"a":1}}`},
		"a removal of it all": {`{"status":null}`, `null`, `{"status":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			merge := decoded(t, test.merge)
			main, status := patch.SplitStatus(merge)
			if !reflect.DeepEqual(main, decoded(t, test.main)) || !reflect.DeepEqual(status, decoded(t, test.status)) {
				t.Errorf("got %v and %v", main, status)
			}
			if !reflect.DeepEqual(merge, decoded(t, test.merge)) {
				t.Errorf("the patch has changed: %v", merge)
			}
		})
	}
}

// FuzzApplyMerge holds our merging against the API server's.
func FuzzApplyMerge(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, left, right []byte) {
		from, merge := mappings(t, left, right)
		text, err := evanphx.MergePatch(encoded(t, from), encoded(t, merge))
		if err != nil {
			t.Skip(err)
		}
		if got, want := patch.ApplyMerge(from, merge), decoded(t, string(text)); !diff.Equal(got, want) {
			t.Errorf("%v with %v: got %v, want %v", from, merge, got, want)
		}
	})
}

// FuzzDifference demands that the difference leads from one state to the other.
func FuzzDifference(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, left, right []byte) {
		from, to := mappings(t, left, right)
		before, after := runtime.DeepCopyJSON(from), runtime.DeepCopyJSON(to)
		merge := patch.Difference(from, to)
		merged := patch.ApplyMerge(from, merge)
		if !diff.Equal(merged, to) {
			t.Errorf("%v -> %v: %v leads to %v", from, to, merge, merged)
		}
		if again := patch.Difference(merged, to); again != nil {
			t.Errorf("%v -> %v: then still %v", from, to, again)
		}
		if (merge == nil) != diff.Equal(from, to) {
			t.Errorf("%v -> %v: %v", from, to, merge)
		}
		if !reflect.DeepEqual(patch.Minimal(from, merge), merge) {
			t.Errorf("%v -> %v: %v is not minimal", from, to, merge)
		}
		if !reflect.DeepEqual(from, before) || !reflect.DeepEqual(to, after) {
			t.Errorf("the states have changed: %v, %v", from, to)
		}
	})
}

func seed(f *testing.F) {
	for _, pair := range [][2]string{
		{`{}`, `{}`},
		{`{"a":{"b":1}}`, `{"a":{"b":null,"c":{}}}`},
		{`{"a":null}`, `{"a":{"b":{"c":null}}}`},
		{`{"a/b":[1,{"~":null}]}`, `{"a/b":[1],"":true,"ü":"<"}`},
		{`{"metadata":{"labels":{"a":"x"}}}`, `{"metadata":{"labels":null},"spec":9007199254740993}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		left, _ := json.Marshal(randomMapping(random, 3))
		right, _ := json.Marshal(randomMapping(random, 3))
		f.Add(left, right)
	}
}

func randomMapping(random *rand.Rand, depth int) m {
	fields := m{}
	for range random.IntN(4) {
		fields[[]string{"a", "b/c", "d~e", ""}[random.IntN(4)]] = randomValue(random, depth-1)
	}
	return fields
}

func randomValue(random *rand.Rand, depth int) any {
	if depth > 0 && random.IntN(2) == 0 {
		return randomMapping(random, depth)
	}
	values := []any{nil, nil, false, "x", 1, 0.5, m{}, []any{}, []any{1, m{"a": nil}}, []any{m{"a": 1}, 1, 2}}
	return values[random.IntN(len(values))]
}

// mappings decodes what the fuzzer drew, if it is JSON as an API server has it.
func mappings(t *testing.T, left, right []byte) (a, b m) {
	for data, into := range map[*[]byte]*m{&left: &a, &right: &b} {
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(*data, into); err != nil || *into == nil {
			t.Skip()
		}
	}
	return a, b
}

func decoded(t *testing.T, text string) m {
	t.Helper()
	var value m
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
