package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// Index has values of all objects of a resource, by keys. Its methods are those of
// [index.Index]: Get, Has, Keys, Len, and others.
//
//	go doc github.com/kopf-go/kopf/pkg/model/index.Index
type Index[K comparable, V any] = index.Index[K, V]

// AnyIndex is an Index with keys and values of any types.
type AnyIndex = handler.Table

// Memo has a value in memory for every object. Its methods are those of [memo.Memo].
//
//	go doc github.com/kopf-go/kopf/pkg/model/memo.Memo
type Memo[T any] = memo.Memo[T]

// NewIndex declares an index, and the function that returns the values of an object by
// their keys. The function is called for every watch event, before any other handler, so it
// must be quick. If it returns a nil map, the values of the object in the index stay; an
// empty map removes them.
//
//	var pods = kopf.NewIndex(kopf.DefaultRegistry, kopf.Resource("v1", "pods"), podsByNode)
//
//	func podsByNode(ctx context.Context, i *kopf.Indexed) (map[string]string, error) {
//		node, _ := i.Spec().String("nodeName")
//		return map[string]string{node: i.Name()}, nil
//	}
//
// Handlers read the index with Get: pods.Get("node-1").
//
// Specification: In-memory indexing.
func NewIndex[K comparable, V any](
	r *Registry, sel Selector, fn func(context.Context, *Indexed) (map[K]V, error), options ...IndexOption,
) *Index[K, V] {
	x := index.New[K, V]()
	r.declared().Add(handler.Index(sel, indexing(x, fn), options...))
	return x
}

// FillIndex declares one more function that fills an index: for another resource, or for
// other values of the same one. Each function replaces and removes only its own values.
//
//	var workloads = kopf.NewIndex(kopf.DefaultRegistry, kopf.Resource("apps", "v1", "deployments"), byTeam)
//
//	func init() {
//		kopf.FillIndex(kopf.DefaultRegistry, workloads, kopf.Resource("apps", "v1", "statefulsets"), byTeam)
//	}
//
// Specification: In-memory indexing.
func FillIndex[K comparable, V any](
	r *Registry, x *Index[K, V], sel Selector, fn func(context.Context, *Indexed) (map[K]V, error), options ...IndexOption,
) {
	r.declared().Add(handler.Index(sel, indexing(sourceOf(x), fn), options...))
}

// sourceOf returns a source of the index, or nil if there is no index.
func sourceOf[K comparable, V any](x *Index[K, V]) handler.Table {
	if x == nil {
		return nil
	}
	return x.Source()
}

// IndexedOf has the arguments of a typed indexing function.
type IndexedOf[T client.Object] struct {
	*Indexed
	object T
}

// Bind sets the arguments, and decodes the object. See ChangeOf.Bind.
func (i *IndexedOf[T]) Bind(to *Indexed) (err error) {
	i.Indexed = to
	i.object, err = decode[T](to.Body().Raw())
	return err
}

// Object returns the object as it is now. If the object does not fit the type, the function
// is not called, and the index has no values of the object.
func (i *IndexedOf[T]) Object() T { return i.object }

// NewIndexOf is NewIndex for the type:
//
//	var pods = kopf.NewIndexOf(kopf.For[*corev1.Pod](kopf.DefaultRegistry), podsByNode)
func NewIndexOf[T client.Object, K comparable, V any](
	t Typed[T], fn func(context.Context, *IndexedOf[T]) (map[K]V, error), options ...IndexOption,
) *Index[K, V] {
	x := index.New[K, V]()
	t.registry.declared().Add(handler.Index(Selector{}, indexingOf(x, fn), options...))
	return x
}

// FillIndexOf is FillIndex for the type:
//
//	kopf.FillIndexOf(kopf.For[*appsv1.StatefulSet](kopf.DefaultRegistry), workloads, byTeam)
func FillIndexOf[T client.Object, K comparable, V any](
	t Typed[T], x *Index[K, V], fn func(context.Context, *IndexedOf[T]) (map[K]V, error), options ...IndexOption,
) {
	t.registry.declared().Add(handler.Index(Selector{}, indexingOf(sourceOf(x), fn), options...))
}

// indexingOf wraps a typed indexing function.
func indexingOf[T client.Object, K comparable, V any](
	table handler.Table, fn func(context.Context, *IndexedOf[T]) (map[K]V, error),
) handler.Function {
	function := handler.Function{Table: table, Object: newOf[T]()}
	if fn != nil {
		function = indexing(table, func(ctx context.Context, i *Indexed) (map[K]V, error) {
			typed := &IndexedOf[T]{}
			if err := typed.Bind(i); err != nil {
				return nil, err
			}
			return fn(ctx, typed)
		})
		function.Origin, function.Object = fn, newOf[T]()
	}
	return function
}

// indexing wraps an indexing function.
func indexing[K comparable, V any](table handler.Table, fn func(context.Context, *Indexed) (map[K]V, error)) handler.Function {
	if fn == nil {
		return handler.Function{Table: table}
	}
	call := func(ctx context.Context, i *Indexed) (any, error) {
		values, err := fn(ctx, i)
		if values == nil || err != nil {
			return nil, err // a nil map in an interface would not be nil
		}
		return values, nil
	}
	return handler.Function{Index: call, Origin: fn, Table: table}
}

// NewMemo declares a value in memory for every object, and one for the operator. The first
// function returns the value of the operator, and the second one copies it for an object.
// Each is called when its value is first needed. Without the first function, the value of
// the operator is the zero value of the type. Without the second one, all objects share the
// value of the operator.
//
//	var visits = kopf.NewMemo(nil, func(*atomic.Int64) *atomic.Int64 { return new(atomic.Int64) })
//
// Handlers get the value of their object with Of: visits.Of(c).Add(1).
//
// Specification: In-memory containers.
func NewMemo[T any](operator func() T, clone func(T) T) *Memo[T] { return memo.New(operator, clone) }
