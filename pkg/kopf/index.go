package kopf

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/index"
)

// Indexed has the arguments of an indexing function: the object without the means to change
// it. Use it only while the function runs.
//
// The function is called for every watch event of the object, and delays all
// other handlers, so it must be fast.
//
// Specification: Arguments; In-memory indexing.
type Indexed struct {
	reading
	retrying
}

func indexedOf(c *handler.Call) *Indexed { return &Indexed{reading{c}, retrying{c}} }

// Index has values of all objects of a resource, by keys. Its methods are those of
// [index.Index]: Get, Has, Keys, Len, and others.
//
//	go doc github.com/kopf-go/kopf/pkg/model/index.Index
type Index[K comparable, V any] = index.Index[K, V]

// AnyIndex is an Index with keys and values of any types.
type AnyIndex = handler.Table

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
	r *Registry, sel Selector, fn func(context.Context, *Indexed) (map[K]V, error), options ...Option,
) *Index[K, V] {
	x := index.New[K, V]()
	r.declared().Add(handler.Index(sel, indexing[K, V](x, returningOf(fn, indexedOf)), options...))
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
	r *Registry, x *Index[K, V], sel Selector, fn func(context.Context, *Indexed) (map[K]V, error), options ...Option,
) {
	r.declared().Add(handler.Index(sel, indexing[K, V](sourceOf(x), returningOf(fn, indexedOf)), options...))
}

// NewIndexOf is NewIndex for the type:
//
//	var pods = kopf.NewIndexOf(kopf.For[*corev1.Pod](kopf.DefaultRegistry), podsByNode)
//
//	func podsByNode(ctx context.Context, pod *corev1.Pod, i *kopf.Indexed) (map[string]string, error) {
//		return map[string]string{pod.Spec.NodeName: pod.Name}, nil
//	}
func NewIndexOf[T client.Object, K comparable, V any](
	t Typed[T], fn func(context.Context, T, *Indexed) (map[K]V, error), options ...Option,
) *Index[K, V] {
	x := index.New[K, V]()
	t.registry.declared().Add(handler.Index(Selector{}, indexing[K, V](x, typedReturningOf(fn, indexedOf)), options...))
	return x
}

// FillIndexOf is FillIndex for the type:
//
//	kopf.FillIndexOf(kopf.For[*appsv1.StatefulSet](kopf.DefaultRegistry), workloads, byTeam)
func FillIndexOf[T client.Object, K comparable, V any](
	t Typed[T], x *Index[K, V], fn func(context.Context, T, *Indexed) (map[K]V, error), options ...Option,
) {
	t.registry.declared().Add(handler.Index(Selector{}, indexing[K, V](sourceOf(x), typedReturningOf(fn, indexedOf)), options...))
}

// sourceOf returns a source of the index, or nil if there is no index.
func sourceOf[K comparable, V any](x *Index[K, V]) handler.Table {
	if x == nil {
		return nil
	}
	return x.Source()
}

// indexing makes a function fill a table. A nil map has no values, and a nil map in an interface would
// not be nil.
func indexing[K comparable, V any](table handler.Table, function handler.Function) handler.Function {
	function.Table = table
	if values := function.Call; values != nil {
		function.Call = func(ctx context.Context, c *handler.Call) (any, error) {
			result, err := values(ctx, c)
			if known, _ := result.(map[K]V); known == nil || err != nil {
				return nil, err
			}
			return result, nil
		}
	}
	return function
}
