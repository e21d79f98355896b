package index_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func owner(name string) object.Key {
	return object.Key{Resource: "pods.v1", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// put replaces the values of an object.
func put(t *testing.T, table handler.Table, name string, values any) {
	t.Helper()
	if err := table.Replace(owner(name), values); err != nil {
		t.Fatal(err)
	}
}

func TestReplaceReplacesValues(t *testing.T) {
	tests := map[string]struct {
		next any
		want map[string][]int
	}{
		"another value under the same key":  {map[string]int{"a": 7}, map[string][]int{"a": {7}, "others": {9}}},
		"another key":                       {map[string]int{"b": 1}, map[string][]int{"b": {1}, "others": {9}}},
		"an additional key":                 {map[string]int{"a": 1, "b": 2}, map[string][]int{"a": {1}, "b": {2}, "others": {9}}},
		"the key of another object":         {map[string]int{"others": 1}, map[string][]int{"others": {1, 9}}},
		"the value of another object":       {map[string]int{"others": 9}, map[string][]int{"others": {9, 9}}},
		"an empty map":                      {map[string]int{}, map[string][]int{"others": {9}}},
		"nil, which is no result":           {nil, map[string][]int{"a": {1}, "others": {9}}},
		"a nil map, which is no result":     {map[string]int(nil), map[string][]int{"a": {1}, "others": {9}}},
		"the zero value, which is a result": {map[string]int{"a": 0}, map[string][]int{"a": {0}, "others": {9}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := index.New[string, int]()
			put(t, x, "one", map[string]int{"a": 1})
			put(t, x, "other", map[string]int{"others": 9})
			put(t, x, "one", test.next)
			if x.Len() != len(test.want) {
				t.Errorf("got %d keys, want %d", x.Len(), len(test.want))
			}
			for key, want := range test.want {
				if got := slices.Sorted(slices.Values(x.Get(key))); !slices.Equal(got, want) {
					t.Errorf("got %v of %s, want %v", got, key, want)
				}
			}
		})
	}
}

func TestNilValuesAreValues(t *testing.T) {
	x := index.New[string, any]()
	put(t, x, "one", map[string]any{"a": nil})
	put(t, x, "two", map[string]any{"a": nil})
	if got := x.Get("a"); len(got) != 2 || !x.Has("a") {
		t.Errorf("got %v", got)
	}
}

// The content of a value that is not comparable may have changed.
func TestValuesOfAnyType(t *testing.T) {
	x := index.New[string, any]()
	for _, value := range []any{[]int{1}, map[string]int{"b": 2}, func() {}, math.NaN(), struct{ any }{[]int{2}}, &struct{}{}, "text", 3, nil} {
		put(t, x, "one", map[string]any{"a": value})
		put(t, x, "one", map[string]any{"a": value})
		if got := x.Get("a"); len(got) != 1 || (got[0] == nil) != (value == nil) {
			t.Errorf("got %v, want %v", got, value)
		}
	}
}

func TestKeysOfAnyType(t *testing.T) {
	type pair struct{ namespace, name string }
	x := index.New[pair, struct{}]()
	put(t, x, "one", map[pair]struct{}{{"ns", "one"}: {}})
	if !x.Has(pair{"ns", "one"}) || x.Has(pair{"ns", "two"}) {
		t.Errorf("got %v", slices.Collect(x.Keys()))
	}
}

func TestObjectsOfTheSameNameAreDistinguished(t *testing.T) {
	x := index.New[string, int]()
	one := owner("one")
	elsewhere, other := one, one
	elsewhere.Namespace, other.Resource = "elsewhere", "nodes.v1"
	for i, o := range []object.Key{one, elsewhere, other} {
		if err := x.Replace(o, map[string]int{"a": i}); err != nil {
			t.Fatal(err)
		}
	}
	x.Remove(elsewhere)
	if got := slices.Sorted(slices.Values(x.Get("a"))); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestInvalidValuesAreRejected(t *testing.T) {
	tests := map[string]struct {
		values any
		want   string
	}{
		"values of another type":     {map[float64]int{1: 1}, "the values have the type map[float64]int, but the index requires map[float64]string"},
		"something else":             {"text", "the values have the type string"},
		"a key that cannot be found": {map[float64]string{math.NaN(): "b", 2: "c"}, "the key NaN does not equal itself"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := index.New[float64, string]()
			put(t, x, "one", map[float64]string{1: "a"})
			err := x.Replace(owner("one"), test.values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if got := x.Get(1); x.Len() != 1 || !slices.Equal(got, []string{"a"}) {
				t.Errorf("the rejected values left %v", got)
			}
		})
	}
}

func TestIndexIsClaimedByOneOperatorAtATime(t *testing.T) {
	x := index.New[string, int]()
	if err := x.Claim(); err != nil {
		t.Fatal(err)
	}
	put(t, x, "one", map[string]int{"a": 1})
	if err := x.Claim(); err == nil || !strings.Contains(err.Error(), "in use by another running operator") {
		t.Errorf("got %v", err)
	}
	kept := x.Get("a")
	x.Release()
	if x.Len() != 0 || x.Get("a") != nil || x.Has("a") {
		t.Errorf("%d keys are left", x.Len())
	}
	if !slices.Equal(kept, []int{1}) {
		t.Errorf("earlier results have changed to %v", kept)
	}
	if err := x.Claim(); err != nil {
		t.Error(err)
	}
}

func TestResultsDoNotChange(t *testing.T) {
	x := index.New[string, int]()
	put(t, x, "one", map[string]int{"a": 1})
	put(t, x, "two", map[string]int{"a": 2})
	before := x.Get("a")
	was := slices.Clone(before)
	put(t, x, "one", map[string]int{"a": 3})
	put(t, x, "three", map[string]int{"a": 4})
	x.Remove(owner("two"))
	if !slices.Equal(before, was) {
		t.Errorf("got %v, was %v", before, was)
	}
	if got := slices.Sorted(slices.Values(x.Get("a"))); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("got %v", got)
	}
}

// Loops see a snapshot, can use the index meanwhile, and can end early.
func TestLoops(t *testing.T) {
	x := index.New[string, int]()
	put(t, x, "one", map[string]int{"a": 1, "b": 1, "c": 1})
	seen := 0
	for key, values := range x.All() {
		seen++
		if len(values) != 1 || values[0] != 1 {
			t.Errorf("got %v of %s", values, key)
		}
		put(t, x, "one", map[string]int{"a": 2, "d": 2})
	}
	for range x.Keys() {
		seen++
		x.Remove(owner("one"))
	}
	if seen != 3+2 || x.Len() != 0 {
		t.Errorf("got %d rounds, %d keys left", seen, x.Len())
	}
	put(t, x, "one", map[string]int{"a": 1, "b": 1})
	for range x.All() {
		break
	}
	for range x.Keys() {
		break
	}
}

// The two values of an object are replaced atomically.
func TestReplaceIsAtomic(t *testing.T) {
	x := index.New[string, int]()
	put(t, x, "one", map[string]int{"a": 0, "b": 0})
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var seen []int
				for _, values := range x.All() {
					seen = append(seen, values...)
				}
				if len(seen) != 2 || seen[0] != seen[1] || len(x.Get("a")) != 1 {
					t.Errorf("got %v", seen)
					return
				}
			}
		})
	}
	for n := range 2000 {
		put(t, x, "one", map[string]int{"a": n, "b": n})
	}
	close(done)
	readers.Wait()
}

func TestRemoveAllRemovesManyObjects(t *testing.T) {
	x := index.New[string, string]()
	for _, name := range []string{"one", "two", "three"} {
		_ = x.Replace(owner(name), map[string]string{"all": name, name: name})
	}
	x.RemoveAll(func(o object.Key) bool { return o.Name != "two" })
	if got := x.Get("all"); len(got) != 1 || got[0] != "two" || x.Has("one") || x.Len() != 2 {
		t.Errorf("got %v, %d keys", got, x.Len())
	}
}
