package kopf

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
)

// functionOf returns a function of a user as the engine calls it. The view presents the call to the
// function.
func functionOf[A any](fn func(context.Context, A) error, view func(*handler.Call) A) handler.Function {
	if fn == nil {
		return handler.Function{}
	}
	return handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) {
		return nil, fn(ctx, view(c))
	}}
}

// returningOf is functionOf for functions with a result.
func returningOf[A, R any](fn func(context.Context, A) (R, error), view func(*handler.Call) A) handler.Function {
	if fn == nil {
		return handler.Function{}
	}
	return handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) {
		return fn(ctx, view(c))
	}}
}

// typedOf is functionOf for functions of a Go type.
func typedOf[T client.Object, A any](fn func(context.Context, T, A) error, view func(*handler.Call) A) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	return decoding(fn, func(ctx context.Context, object T, c *handler.Call) (any, error) {
		return nil, fn(ctx, object, view(c))
	})
}

// typedReturningOf is returningOf for functions of a Go type.
func typedReturningOf[T client.Object, A, R any](fn func(context.Context, T, A) (R, error), view func(*handler.Call) A) handler.Function {
	if fn == nil {
		return handler.Function{Object: newOf[T]()}
	}
	return decoding(fn, func(ctx context.Context, object T, c *handler.Call) (any, error) {
		return fn(ctx, object, view(c))
	})
}

// decoding returns the function origin, which is called with the decoded object.
func decoding[T client.Object](origin any, call func(context.Context, T, *handler.Call) (any, error)) handler.Function {
	return handler.Function{Origin: origin, Object: newOf[T](), Call: func(ctx context.Context, c *handler.Call) (any, error) {
		object, err := objectOf[T](c)
		if err != nil {
			return nil, err
		}
		return call(ctx, object, c)
	}}
}

// objectOf decodes the object of a call. It returns nil if the handler is called although the object
// does not fit the type, and if a review is about something of another kind. Its error is a
// MisfitError.
func objectOf[T client.Object](c *handler.Call) (T, error) {
	var none T
	if c.IsUntyped() || c.Review != nil && !isOfKind(c, c.Body()) {
		return none, nil
	}
	object := newOf[T]()
	if err := handler.DecodeObject(c.Body().Raw(), object); err != nil {
		return none, err
	}
	return object, nil
}

// newOf returns an empty object. It returns nil if T is an interface, which is a mistake in
// the declaration: the type is unknown.
func newOf[T client.Object]() T {
	if reflect.TypeFor[T]().Kind() == reflect.Interface {
		var none T
		return none
	}
	typed, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return typed
}
