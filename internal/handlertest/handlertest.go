// Package handlertest makes functions of handlers for tests below package kopf.
package handlertest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Function returns a function that has no result.
func Function(fn func(context.Context, *handler.Call) error) handler.Function {
	if fn == nil {
		return handler.Function{}
	}
	return handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) { return nil, fn(ctx, c) }}
}

// Returning returns a function with a result.
func Returning[R any](fn func(context.Context, *handler.Call) (R, error)) handler.Function {
	return handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) { return fn(ctx, c) }}
}

// Typed returns a function for objects of a Go type. It does not decode them.
func Typed(of runtime.Object, fn func(context.Context, *handler.Call) error) handler.Function {
	function := Function(fn)
	function.Object = of
	return function
}

// Filling returns a function that fills an index.
func Filling[R any](table handler.Table, fn func(context.Context, *handler.Call) (R, error)) handler.Function {
	function := Returning(fn)
	function.Table = table
	return function
}

// When is handler.When for a function.
func When(accepts func(*handler.Call) bool) handler.Option {
	return handler.When(handler.Predicate{Accepts: accepts, Place: function.Place(accepts)})
}

// MatchFunc is handler.MatchFunc for a function.
func MatchFunc(test func(object.Value, *handler.Call) bool) handler.Matcher {
	return handler.MatchFunc(test, function.Place(test))
}

// Subhandler registers a sub-handler in a call.
func Subhandler(c *handler.Call, id string, fn func(context.Context, *handler.Call) error, options ...handler.ChangeOption) {
	c.Register(handler.NewSubhandler(id, Function(fn), options...))
}
