package diff_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
)

type m = map[string]any

// hashed is a value that can only be compared with another one.
type hashed struct{ value any }

func (h hashed) EqualTo(value any) bool { return diff.Equal(h.value, value) }

func TestCompute(t *testing.T) {
	for name, test := range map[string]struct {
		before, after any
		want          diff.Diff
	}{
		"a missing essence is absent": {
			object.Essence(nil),
			m{"spec": m{}},
			diff.Diff{{diff.Add, object.Path{}, nil, m{"spec": m{}}}},
		},
		"a removed essence is removed": {
			m{"spec": m{}},
			object.Essence(nil),
			diff.Diff{{diff.Remove, object.Path{}, m{"spec": m{}}, nil}},
		},
		"two missing essences are the same": {object.Essence(nil), nil, nil},
		"a nil list is absent": {
			m{"a": []any(nil)},
			m{"a": []any{}},
			diff.Diff{{diff.Add, object.Path{"a"}, nil, []any{}}},
		},
		"an empty mapping is not absent": {
			m{},
			m{"a": m{}},
			diff.Diff{{diff.Add, object.Path{"a"}, nil, m{}}},
		},
		"items are sorted by path, key by key": {
			m{"b": m{"a": int64(1)}, "b-": int64(1), "a": int64(1)},
			m{"b": m{"z": int64(1)}, "b-": int64(2), "a": int64(2)},
			diff.Diff{
				{diff.Change, object.Path{"a"}, int64(1), int64(2)},
				{diff.Remove, object.Path{"b", "a"}, int64(1), nil},
				{diff.Add, object.Path{"b", "z"}, nil, int64(1)},
				{diff.Change, object.Path{"b-"}, int64(1), int64(2)},
			},
		},
		"a list that changes inside changes as a whole": {
			m{"a": []any{m{"x": int64(1)}}},
			m{"a": []any{m{"x": int64(2)}}},
			diff.Diff{{diff.Change, object.Path{"a"}, []any{m{"x": int64(1)}}, []any{m{"x": int64(2)}}}},
		},
		"true is not one": {
			m{"a": true},
			m{"a": int64(1)},
			diff.Diff{{diff.Change, object.Path{"a"}, true, int64(1)}},
		},
		"an equal unknown value is not a difference": {
			m{"a": hashed{"x"}, "b": hashed{m{}}}, m{"a": "x", "b": m{}}, nil,
		},
		"a different unknown value is the old value": {
			m{"a": hashed{"x"}},
			m{"a": "y"},
			diff.Diff{{diff.Change, object.Path{"a"}, hashed{"x"}, "y"}},
		},
		"a missing unknown value is removed": {
			m{"a": hashed{"x"}},
			m{},
			diff.Diff{{diff.Remove, object.Path{"a"}, hashed{"x"}, nil}},
		},
		"an unknown value never equals an absent one": {
			m{"a": hashed{nil}},
			m{"a": nil},
			diff.Diff{{diff.Remove, object.Path{"a"}, hashed{nil}, nil}},
		},
		"an unknown value becomes a mapping": {
			m{"a": hashed{"x"}},
			m{"a": m{"b": "x"}},
			diff.Diff{{diff.Change, object.Path{"a"}, hashed{"x"}, m{"b": "x"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diff.Compute(test.before, test.after, diff.Full); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestComputeAllocatesNothingForEqualStates(t *testing.T) {
	before, after := any(deployment()), any(deployment())
	if n := testing.AllocsPerRun(100, func() { diff.Compute(before, after, diff.Full) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestComputeHandlesAnyDepth(t *testing.T) {
	nest := func(leaf any) any {
		for range 1000 {
			leaf = m{"a": leaf}
		}
		return leaf
	}
	got := diff.Compute(nest("x"), nest("y"), diff.Full)
	if len(got) != 1 || len(got[0].Path) != 1000 {
		t.Errorf("got %d items", len(got))
	}
}

// TestComputeIsComplete replays the differences of random states, and expects the new
// state.
func TestComputeIsComplete(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		before, after := randomMapping(random, 3), randomMapping(random, 3)
		items := diff.Compute(before, after, diff.Full)
		var got any = before
		for _, item := range items {
			got = replay(got, item.Path, item.New)
		}
		if !diff.Equal(got, after) {
			t.Fatalf("%v -> %v: replaying %v gives %v", before, after, items, got)
		}
		if !slices.IsSortedFunc(items, func(a, b diff.Item) int { return slices.Compare(a.Path, b.Path) }) {
			t.Fatalf("not sorted: %v", items)
		}
	}
}

// TestScopesNarrowTheFullDifference compares the scopes with the full difference of
// random states.
func TestScopesNarrowTheFullDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		before, after := randomMapping(random, 3), randomMapping(random, 3)
		full := diff.Compute(before, after, diff.Full)
		left := keep(full, func(i diff.Item) bool { return i.Op != diff.Add || has(before, i.Path) })
		right := keep(full, func(i diff.Item) bool { return i.Op != diff.Remove || has(after, i.Path) })
		if got := diff.Compute(before, after, diff.Left); !reflect.DeepEqual(got, left) {
			t.Fatalf("left of %v -> %v: got %v, want %v", before, after, got, left)
		}
		if got := diff.Compute(before, after, diff.Right); !reflect.DeepEqual(got, right) {
			t.Fatalf("right of %v -> %v: got %v, want %v", before, after, got, right)
		}
	}
}

func keep(items diff.Diff, test func(diff.Item) bool) diff.Diff {
	var kept diff.Diff
	for _, item := range items {
		if test(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// has reports whether the key exists, even with a null.
func has(mapping m, path object.Path) bool {
	parent, _ := object.Lookup(mapping, path[:len(path)-1])
	fields, _ := parent.(m)
	_, ok := fields[path[len(path)-1]]
	return ok
}

func replay(value any, path object.Path, item any) any {
	if len(path) == 0 {
		return item
	}
	fields := maps.Clone(value.(m))
	fields[path[0]] = replay(fields[path[0]], path[1:], item)
	return fields
}

func randomMapping(random *rand.Rand, depth int) m {
	fields := m{}
	for range random.IntN(4) {
		fields[string("abcd"[random.IntN(4)])] = randomValue(random, depth-1)
	}
	return fields
}

func randomValue(random *rand.Rand, depth int) any {
	values := []any{nil, true, false, "", "x", int64(0), int64(1), float64(1), 0.5, []any{}, []any{nil, m{"a": nil}}}
	if depth > 0 && random.IntN(2) == 0 {
		return randomMapping(random, depth)
	}
	return values[random.IntN(len(values))]
}
