package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// Index is what an operator knows of all objects of a resource, by keys. Its
// methods are in package index.
type Index[K comparable, V any] = index.Index[K, V]

// Memo is a value in memory for every object. Its methods are in package memo.
type Memo[T any] = memo.Memo[T]

// NewIndex declares an index, and the function that tells for an object what the
// index is to have of it: values by keys. The function is called for every watch
// event of the object, before any other handler, so it must be quick. A nil map
// keeps what the index has of the object; an empty one removes it. A nil registry
// is the default one.
//
//	var pods = kopf.NewIndex(nil, kopf.Resource("v1", "pods"), podsByNode)
//
//	func podsByNode(ctx context.Context, i *kopf.Indexed) (map[string]string, error) {
//		node, _ := i.Spec().String("nodeName")
//		return map[string]string{node: i.Name()}, nil
//	}
//
// Handlers read it: pods.Get("node-1").
//
// Specification: In-memory indexing.
func NewIndex[K comparable, V any](
	r *Registry, sel Selector, fn func(context.Context, *Indexed) (map[K]V, error), options ...IndexOption,
) *Index[K, V] {
	if r == nil {
		r = DefaultRegistry
	}
	x := index.New[K, V]()
	r.declared().Add(handler.Index(sel, indexing(x, fn), options...))
	return x
}

// IndexedOf is an Indexed of a typed object.
type IndexedOf[T client.Object] struct {
	*Indexed
	object T
}

// Object is the object as it is now.
func (i *IndexedOf[T]) Object() T { return i.object }

// NewIndexOf is NewIndex for the type:
//
//	var pods = kopf.NewIndexOf(kopf.For[*corev1.Pod](nil), podsByNode)
func NewIndexOf[T client.Object, K comparable, V any](
	t Typed[T], fn func(context.Context, *IndexedOf[T]) (map[K]V, error), options ...IndexOption,
) *Index[K, V] {
	x := index.New[K, V]()
	function := handler.Function{Table: x, Object: newOf[T]()}
	if fn != nil {
		function = indexing(x, func(ctx context.Context, i *Indexed) (map[K]V, error) {
			object, err := decode[T](i.Body().Raw())
			if err != nil {
				return nil, err
			}
			return fn(ctx, &IndexedOf[T]{i, object})
		})
		function.Origin, function.Object = fn, newOf[T]()
	}
	t.registry.handlers.Add(handler.Index(Selector{}, function, options...))
	return x
}

// indexing makes a handler of a typed function.
func indexing[K comparable, V any](x *Index[K, V], fn func(context.Context, *Indexed) (map[K]V, error)) handler.Function {
	if fn == nil {
		return handler.Function{Table: x}
	}
	call := func(ctx context.Context, i *Indexed) (any, error) {
		values, err := fn(ctx, i)
		if values == nil || err != nil {
			return nil, err // a nil map in an interface would not be nil
		}
		return values, nil
	}
	return handler.Function{Index: call, Origin: fn, Table: x}
}

// NewMemo declares a value that is kept in memory for every object, and one for
// the operator as a whole. The first function makes the operator's value, the
// second one copies it for an object; each when the value is first asked for. Without
// the first one the operator's value is the zero value of the type; without the second
// one all objects share the operator's value.
//
//	var visits = kopf.NewMemo(nil, func(*atomic.Int64) *atomic.Int64 { return new(atomic.Int64) })
//
// Handlers ask for the value of their object: visits.Of(c).Add(1).
//
// Specification: In-memory containers.
func NewMemo[T any](operator func() T, clone func(T) T) *Memo[T] { return memo.New(operator, clone) }
