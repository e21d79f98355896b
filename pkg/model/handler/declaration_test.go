package handler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestCallsAreObserved(t *testing.T) {
	failure := errors.New("failed")
	d, err := handler.Create(selector.New("things"), handler.Function{Change: func(context.Context, *handler.Change) error { return failure }}, handler.ID("create"))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	ctx := handler.WithObserver(t.Context(), func(d *handler.Declaration, arguments any) func(error) {
		got = append(got, d.ID, arguments)
		return func(err error) { got = append(got, err) }
	})
	c := &handler.Change{}
	if _ = d.Call(t.Context(), c); len(got) != 0 || handler.IsObserved(t.Context()) {
		t.Errorf("calls are observed without an observer: %v", got)
	}
	if _ = d.Call(ctx, c); len(got) != 3 || got[0] != "create" || got[1] != c || !errors.Is(got[2].(error), failure) || !handler.IsObserved(ctx) {
		t.Errorf("got %v", got)
	}
}
