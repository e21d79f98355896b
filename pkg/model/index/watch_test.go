package index_test

import (
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestWatchersAreToldAboutChanges(t *testing.T) {
	type values = map[string]*[]string // neither comparable nor the same pointer twice
	of := func(names ...string) *[]string { return &names }
	x := index.New[string, *[]string]()
	more := x.Source()
	var told, toldOfMore int
	stop := index.Watch(x, func() {
		told++
		_ = x.Len() // a watcher can read the index
	})
	defer index.Watch(more, func() { toldOfMore++ })()
	for _, test := range []struct {
		name    string
		do      func()
		changes int
	}{
		{"the first object", func() { put(t, x, "one", values{"a": of("x")}) }, 1},
		{"equal values", func() { put(t, x, "one", values{"a": of("x")}) }, 0},
		{"another value", func() { put(t, x, "one", values{"a": of("y")}) }, 1},
		{"another key", func() { put(t, x, "one", values{"b": of("y")}) }, 1},
		{"one more key", func() { put(t, x, "one", values{"a": of("x"), "b": of("y")}) }, 1},
		{"no result", func() { put(t, x, "one", nil) }, 0},
		{"no values", func() { put(t, x, "two", values{}) }, 0},
		{"another function", func() { put(t, more, "one", values{"a": of("x")}) }, 1},
		{"an unknown object", func() { x.Remove(owner("three")) }, 0},
		{"a removal", func() { x.Remove(owner("one")) }, 1},
		{"a removal of nothing", func() { x.RemoveAll(func(object.Key) bool { return true }) }, 0},
		{"a removal of all", func() { more.RemoveAll(func(object.Key) bool { return true }) }, 1},
		{"the release of an empty index", x.Release, 0},
	} {
		told, toldOfMore = 0, 0
		if test.do(); told != test.changes || toldOfMore != test.changes {
			t.Errorf("%s: %d and %d changes, want %d", test.name, told, toldOfMore, test.changes)
		}
	}
	stop()
	told = 0
	if put(t, x, "one", values{"a": of("x")}); told != 0 {
		t.Error("a watcher that has stopped is told")
	}
	if index.Of(more) != handler.Table(x) || index.Of(x) != handler.Table(x) {
		t.Error("the index of a table is another one")
	}
}
