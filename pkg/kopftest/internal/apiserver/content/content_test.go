package content

import (
	stdjson "encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/json"
)

// random returns values with few keys, so that patches meet what is there.
func random(r *rand.Rand, depth int) any {
	kinds := 10
	if depth == 0 {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return int64(r.IntN(3) - 1)
	case 4:
		return 0.5 + float64(r.IntN(3))
	case 5, 6:
		return []string{"", "a", "ä\u2028", "<\"\\>\n&", "\x7f"}[r.IntN(5)]
	case 7:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, random(r, depth-1))
		}
		return list
	default:
		return randomObject(r, depth)
	}
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range r.IntN(4) {
		object[[]string{"a", "b", "c/d"}[r.IntN(3)]] = random(r, depth-1)
	}
	return object
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := stdjson.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

// The results are those of the libraries that the functions replace.
func TestRandomValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		object, patch := randomObject(r, 4), randomObject(r, 4)
		before, change := encode(t, object), encode(t, patch)
		if text, err := Append(nil, object); err != nil || string(text) != string(before) {
			t.Fatalf("encoded: %s, %v, want %s", text, err, before)
		}
		copied, _ := Copy(object).(map[string]any)
		if !reflect.DeepEqual(copied, decode(t, before)) || !Equal(copied, object) {
			t.Fatalf("copied: %v, want %s", copied, before)
		}
		after, err := jsonpatch.MergePatch(before, change)
		if err != nil {
			t.Fatal(err)
		}
		Merge(copied, decode(t, change))
		if want := decode(t, after); !reflect.DeepEqual(copied, want) {
			t.Fatalf("%s with %s: got %v, want %v", before, change, copied, want)
		}
		if string(encode(t, object)) != string(before) {
			t.Fatalf("the copy shares parts of the original, which is now %v", object)
		}
		if other := randomObject(r, 4); Equal(object, other) != reflect.DeepEqual(object, other) {
			t.Fatalf("%v equals %v: %v", object, other, Equal(object, other))
		}
	}
}

func TestCopiedNumbers(t *testing.T) {
	for number, want := range map[float64]any{1: int64(1), -2: int64(-2), 0.5: 0.5, 1e300: 1e300} {
		if got := Copy(number); got != want {
			t.Errorf("%v: got %v", number, got)
		}
	}
}

func TestOtherValues(t *testing.T) {
	type other struct {
		Name string `json:"name"`
	}
	value := map[string]any{"a": other{"x"}, "b": map[string]any(nil), "c": []any(nil), "d": 1.5, "e": []string{"f"}}
	if text, err := Append(nil, value); err != nil || string(text) != string(encode(t, value)) {
		t.Errorf("got %s, %v", text, err)
	}
	if _, err := Append(nil, []any{map[string]any{"a": func() {}}}); err == nil {
		t.Error("a function is encoded")
	}
	if !Equal(value, value) || !Equal([]string{"a"}, []string{"a"}) || Equal([]any{}, []any(nil)) || Equal(map[string]any{}, map[string]any(nil)) {
		t.Error("not as reflect.DeepEqual")
	}
}
