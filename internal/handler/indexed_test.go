package handler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
)

// table is an index for tests that check only its identity.
type table struct{ handler.Table }

func listed(context.Context, *handler.Call) (any, error) { return map[string]int{"a": 1}, nil }

func indexed(t testing.TB, fn func(context.Context, *handler.Call) (any, error), options ...handler.Option) *handler.Declaration {
	t.Helper()
	d, err := handler.Index(kex, fillingOf(&table{}, fn), append(options, handler.ID("fn"))...)
	return declared(t, d, err)
}

func TestIndicesAreDeclared(t *testing.T) {
	d := indexed(t, listed)
	if d.Errors != handler.ErrorsIgnored || d.Kind != handler.OnIndex || d.Table == nil || d.HoldsDeletion() {
		t.Errorf("got %+v", d)
	}
	d = indexed(t, listed, handler.Errors(handler.ErrorsTemporary), handler.Retries(1), handler.Field("spec"), handler.Value(handler.Present()))
	if d.Errors != handler.ErrorsTemporary || *d.Retries != 1 || d.ID != "fn/spec" {
		t.Errorf("got %+v", d)
	}
}

func TestInvalidIndicesAreRejected(t *testing.T) {
	d, err := handler.Index(kex, returningOf(listed))
	refused(t, d, err, `the index handler "listed": there is no index to fill: declare the handler with kopf.NewIndex`)
	d, err = handler.Index(kex, handler.Function{Table: &table{}}, handler.ID("a"))
	refused(t, d, err, `the index handler "a": the function is nil`)
	d, err = handler.Index(kex, fillingOf(&table{}, listed), handler.Timeout(-1), handler.ID(""))
	refused(t, d, err, "the timeout -1ns is negative", "its id is empty")
}

func TestIndexingFunctionsAreCalled(t *testing.T) {
	failure := errors.New("no")
	call := func(fn func(context.Context, *handler.Call) (any, error)) (any, error) {
		d := indexed(t, fn)
		return d.CallIsolated(t.Context(), handler.NewCall(d, subject(), handler.Attempt{}))
	}
	values, err := call(listed)
	if got, ok := values.(map[string]int); !ok || got["a"] != 1 || err != nil {
		t.Errorf("got %v, %v", values, err)
	}
	if _, err = call(func(context.Context, *handler.Call) (any, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	var panicked *handler.PanicError
	if _, err = call(func(context.Context, *handler.Call) (any, error) { panic(failure) }); !errors.As(err, &panicked) || !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

// One function for two indices fills both if their ids differ: it does not count as one handler
// with two declarations.
func TestOneFunctionCanFillTwoIndices(t *testing.T) {
	one, two := &table{}, &table{}
	declare := func(into *table, id string) *handler.Declaration {
		d, err := handler.Index(kex, fillingOf(into, listed), handler.ID(id))
		return declared(t, d, err)
	}
	first := declare(one, "a")
	if again := declare(one, "a"); !again.IsSame(first) || again.CheckConflict(first) != nil {
		t.Errorf("got %v", again.CheckConflict(first))
	}
	if other := declare(two, "b"); other.IsSame(first) || other.CheckConflict(first) != nil {
		t.Errorf("got %v", other.CheckConflict(first))
	}
	clash := declare(two, "a")
	if clash.IsSame(first) {
		t.Error("the declarations count as one handler")
	}
	refused(t, nil, clash.CheckConflict(first), `the id "a" is taken by another declaration of an index at handler/indexed_test.go:`, "another kopf.ID")
}
