package handler_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/internal/function"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

type m = map[string]any

var kex = selector.New("kopf.dev", "v1", "kopfexamples")

func doNothing(context.Context, *handler.Call) error { return nil }

func watchNothing(context.Context, *handler.Call) error { return nil }

func change(fn func(context.Context, *handler.Call) error) handler.Function {
	return functionOf(fn)
}

// declared returns a valid declaration.
func declared(t testing.TB, d *handler.Declaration, err error) *handler.Declaration {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refused expects an error of a declaration.
func refused(t *testing.T, d *handler.Declaration, err error, want ...string) {
	t.Helper()
	if d != nil || err == nil {
		t.Fatalf("got %+v, %v, want an error with %q", d, err, want)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
}

// occasion returns an update of an object from one state to another.
func occasion(reason cause.Reason, from, to object.Essence) *handler.Cause {
	o := &handler.Cause{Reason: reason, Old: from, New: to, CallContext: handler.CallContext{Body: object.NewBody(to)}}
	var before, after any = from, to
	if from == nil {
		before = nil
	}
	o.Diff = diff.Compute(before, after, diff.Full)
	return o
}

// subject is an object with the means to work on it.
func subject() handler.CallContext {
	return handler.CallContext{
		Body:  object.NewBody(m{"metadata": m{"name": "one", "namespace": "ns", "uid": "u-1", "labels": m{"a": "b"}}, "spec": m{"size": int64(1)}}),
		Patch: &patch.Patch{},
	}
}

// changing returns a call of a handler of changes.
func changing(d *handler.Declaration, what *handler.Cause) *handler.Call {
	return handler.NewChange(d, subject(), handler.Attempt{}, nil, what.Reason, func() *handler.Cause { return what })
}

// functionOf returns a function that has no result.
func functionOf(fn func(context.Context, *handler.Call) error) handler.Function {
	if fn == nil {
		return handler.Function{}
	}
	return handler.Function{Origin: fn, Call: func(ctx context.Context, c *handler.Call) (any, error) { return nil, fn(ctx, c) }}
}

func typedOf(of runtime.Object, fn func(context.Context, *handler.Call) error) handler.Function {
	function := functionOf(fn)
	function.Object = of
	return function
}

func returningOf(fn func(context.Context, *handler.Call) (any, error)) handler.Function {
	return handler.Function{Origin: fn, Call: fn}
}

func fillingOf(table handler.Table, fn func(context.Context, *handler.Call) (any, error)) handler.Function {
	return handler.Function{Origin: fn, Call: fn, Table: table}
}

func whenOf(accepts func(*handler.Call) bool) handler.Option {
	return handler.When(handler.Predicate{Accepts: accepts, Place: function.Place(accepts)})
}

func matchFuncOf(test func(object.Value, *handler.Call) bool) handler.Matcher {
	return handler.MatchFunc(test, function.Place(test))
}
