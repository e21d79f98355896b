package handler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/patch"
)

// table is an index for tests that check only its identity.
type table struct{ handler.Table }

func listed(context.Context, *handler.Indexed) (any, error) { return map[string]int{"a": 1}, nil }

func indexed(t testing.TB, fn handler.IndexFunc, options ...handler.IndexOption) *handler.Declaration {
	t.Helper()
	d, err := handler.Index(kex, handler.Function{Index: fn, Table: &table{}}, append(options, handler.ID("fn"))...)
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
	d, err := handler.Index(kex, handler.Function{Index: listed})
	refused(t, d, err, `the index handler "listed": there is no index to fill: declare the handler with kopf.NewIndex`)
	d, err = handler.Index(kex, handler.Function{Table: &table{}}, handler.ID("a"))
	refused(t, d, err, `the index handler "a": the function is nil`)
	d, err = handler.Index(kex, handler.Function{Index: listed, Table: &table{}}, handler.Timeout(-1), handler.ID(""))
	refused(t, d, err, "the timeout -1ns is negative", "its id is empty")
}

// An indexing function can only read the object.
func TestIndexedArgumentsCannotChangeTheObject(t *testing.T) {
	var a any = handler.NewIndexed(subject(), nil, handler.Attempt{})
	if _, can := a.(interface{ Patch() *patch.Patch }); can {
		t.Error("the arguments have a patch")
	}
	if _, can := a.(interface{ SetResult(any) }); can {
		t.Error("the arguments have a result")
	}
}

func TestIndexingFunctionsAreCalled(t *testing.T) {
	failure := errors.New("no")
	arguments := handler.NewIndexed(subject(), nil, handler.Attempt{})
	values, err := indexed(t, listed).CallIndex(t.Context(), arguments)
	if got, ok := values.(map[string]int); !ok || got["a"] != 1 || err != nil {
		t.Errorf("got %v, %v", values, err)
	}
	_, err = indexed(t, func(context.Context, *handler.Indexed) (any, error) { return nil, failure }).CallIndex(t.Context(), arguments)
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	var panicked *handler.PanicError
	_, err = indexed(t, func(context.Context, *handler.Indexed) (any, error) { panic(failure) }).CallIndex(t.Context(), arguments)
	if !errors.As(err, &panicked) || !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

// One function for two indices fills both if their ids differ: it does not count as one handler
// with two declarations.
func TestOneFunctionCanFillTwoIndices(t *testing.T) {
	one, two := &table{}, &table{}
	declare := func(into *table, id string) *handler.Declaration {
		d, err := handler.Index(kex, handler.Function{Index: listed, Table: into}, handler.ID(id))
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
