package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func owner(name string) object.Key {
	return object.Key{Resource: "pods.v1", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// model is the simplest possible index: the values of each object.
type model map[object.Key]map[int]int

func (m model) get(key int) []int {
	var values []int
	for _, has := range m {
		if value, ok := has[key]; ok {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

func (m model) keys() []int {
	keys := map[int]bool{}
	for _, has := range m {
		for key := range has {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// Random additions, changes, and removals result in the same content as in the model.
func TestIndexMatchesModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, seed))
			x, want := New[int, int](), model{}
			for range 300 {
				who := owner(fmt.Sprint(random.IntN(12)))
				values := map[int]int{}
				for range random.IntN(6) {
					values[random.IntN(10)] = random.IntN(3)
				}
				if random.IntN(4) == 0 {
					delete(want, who)
					x.Remove(who)
				} else {
					want[who] = values
					if err := x.Replace(who, values); err != nil {
						t.Fatal(err)
					}
				}
				compare(t, x, want)
				check(t, x)
			}
		})
	}
}

func compare(t *testing.T, x *Index[int, int], want model) {
	t.Helper()
	keys := want.keys()
	if got := slices.Sorted(x.Keys()); !slices.Equal(got, keys) || x.Len() != len(keys) {
		t.Fatalf("got the keys %v, %d of them, want %v", got, x.Len(), keys)
	}
	for key := range 10 {
		values := want.get(key)
		if got := slices.Sorted(slices.Values(x.Get(key))); !slices.Equal(got, values) || x.Has(key) != (len(values) > 0) {
			t.Fatalf("got the values %v of %d, want %v", got, key, values)
		}
	}
	all := 0
	for key, values := range x.All() {
		all++
		if got := slices.Sorted(slices.Values(values)); !slices.Equal(got, want.get(key)) {
			t.Fatalf("got %v of %d among all", got, key)
		}
	}
	if all != len(keys) {
		t.Fatalf("got %d keys among all, want %d", all, len(keys))
	}
}

// check verifies the links between both sides of the index.
func check(t *testing.T, x *Index[int, int]) {
	t.Helper()
	entries, places := 0, 0
	for key, c := range x.cells {
		entries += len(c.entries)
		for at, e := range c.entries {
			if back := e.holding.places[e.nth]; back.cell != c || back.at != at || back.key != key {
				t.Fatalf("the entry %d of %d points to a place with the entry %d of %d", at, key, back.at, back.key)
			}
		}
	}
	for who, held := range x.own.holdings {
		places += len(held.places)
		if len(held.places) == 0 {
			t.Fatalf("%v holds nothing, and is remembered", who)
		}
	}
	if entries != places {
		t.Fatalf("there are %d entries and %d places", entries, places)
	}
}

func TestRemovedObjectsLeaveNothingBehind(t *testing.T) {
	x := New[string, string]()
	fill(t, x, 1000)
	large := cap(x.cells["all"].entries)
	for n := range 990 {
		x.Remove(owner(fmt.Sprint(n)))
	}
	if got := cap(x.cells["all"].entries); got > large/10 {
		t.Errorf("the room of %d values is kept, of %d", got, large)
	}
	for n := 990; n < 1000; n++ {
		x.Remove(owner(fmt.Sprint(n)))
	}
	if x.cells != nil || x.own.holdings != nil {
		t.Errorf("%d keys and %d objects are left", len(x.cells), len(x.own.holdings))
	}
}

// fill adds objects to the index, each with its own key and a common key.
func fill(tb testing.TB, x *Index[string, string], objects int) {
	tb.Helper()
	for n := range objects {
		name := fmt.Sprint(n)
		if err := x.Replace(owner(name), map[string]string{"all": name, name: name}); err != nil {
			tb.Fatal(err)
		}
	}
}
