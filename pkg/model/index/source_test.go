package index_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func everything(object.Key) bool { return true }

// The functions see the same object, so only the source tells their values apart.
func TestSourcesReplaceOnlyTheirOwnValues(t *testing.T) {
	tests := map[string]struct {
		act  func(t *testing.T, first, second handler.Table)
		want map[string][]int
	}{
		"both":                     {func(*testing.T, handler.Table, handler.Table) {}, map[string][]int{"a": {1, 2}, "b": {3}}},
		"another value":            {func(t *testing.T, _, second handler.Table) { put(t, second, "one", map[string]int{"a": 7}) }, map[string][]int{"a": {1, 7}}},
		"no value of the first":    {func(t *testing.T, first, _ handler.Table) { put(t, first, "one", map[string]int{}) }, map[string][]int{"a": {2}, "b": {3}}},
		"removed from the first":   {func(_ *testing.T, first, _ handler.Table) { first.Remove(owner("one")) }, map[string][]int{"a": {2}, "b": {3}}},
		"removed from the second":  {func(_ *testing.T, _, second handler.Table) { second.Remove(owner("one")) }, map[string][]int{"a": {1}}},
		"all removed from a table": {func(_ *testing.T, _, second handler.Table) { second.RemoveAll(everything) }, map[string][]int{"a": {1}}},
		"the first is released":    {func(_ *testing.T, first, _ handler.Table) { first.Release() }, map[string][]int{"a": {2}, "b": {3}}},
		"the second is released":   {func(_ *testing.T, _, second handler.Table) { second.Release() }, map[string][]int{"a": {1}}},
		"both are released":        {func(_ *testing.T, first, second handler.Table) { first.Release(); second.Release() }, map[string][]int{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			x := index.New[string, int]()
			second := x.Source()
			put(t, x, "one", map[string]int{"a": 1})
			put(t, second, "one", map[string]int{"a": 2, "b": 3})
			test.act(t, x, second)
			got := maps.Collect(x.All())
			for key := range got {
				slices.Sort(got[key])
			}
			if !maps.EqualFunc(got, test.want, slices.Equal) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSourcesAreClaimedSeparately(t *testing.T) {
	x := index.New[string, int]()
	one, two := x.Source(), x.Source()
	for _, table := range []handler.Table{x, one, two} {
		if err := table.Claim(); err != nil {
			t.Error(err)
		}
		if err := table.Claim(); err == nil {
			t.Error("it is claimed twice")
		}
	}
	one.Release()
	if err := one.Claim(); err != nil {
		t.Error(err)
	}
}

func TestSourcesRejectOtherTypes(t *testing.T) {
	if err := index.New[string, int]().Source().Replace(owner("one"), map[string]string{"a": "b"}); err == nil {
		t.Error("values of another type are accepted")
	}
}
