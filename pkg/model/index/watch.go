package index

import (
	"slices"

	"github.com/kopf-go/kopf/internal/handler"
)

// watcher is told about changes of an index.
type watcher struct{ changed func() }

// Watch calls a function after every change of the keys or values of an index, until it is
// stopped. The table is an index, or a source of one. The function must return quickly. Values
// are compared as reflect.DeepEqual does: an object that is indexed again with equal values is no
// change. It is internal to the framework, and ignores other tables.
func Watch(of handler.Table, changed func()) (stop func()) {
	if table, ok := of.(interface {
		watch(changed func()) (stop func())
	}); ok {
		return table.watch(changed)
	}
	return func() {}
}

// Of returns the index of a table: the table itself, or the index of a source.
func Of(table handler.Table) handler.Table {
	if source, ok := table.(interface{ of() handler.Table }); ok {
		return source.of()
	}
	return table
}

func (s *source[K, V]) of() handler.Table { return s.index }

func (s *source[K, V]) watch(changed func()) (stop func()) { return s.index.watch(changed) }

func (x *Index[K, V]) watch(changed func()) (stop func()) {
	w := &watcher{changed}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.watchers = append(slices.Clip(x.watchers), w)
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.watchers = slices.DeleteFunc(slices.Clone(x.watchers), func(other *watcher) bool { return other == w })
	}
}

// change changes the index, and tells the watchers if the function returns true.
func change[K comparable, V any](x *Index[K, V], apply func() (changed bool)) {
	x.mu.Lock()
	var told []*watcher
	if apply() {
		told = x.watchers
	}
	x.mu.Unlock()
	for _, w := range told {
		w.changed()
	}
}
