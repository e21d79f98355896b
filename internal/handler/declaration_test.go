package handler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestCallsAreObserved(t *testing.T) {
	failure := errors.New("failed")
	d, err := handler.Create(selector.New("things"), functionOf(func(context.Context, *handler.Call) error { return failure }), handler.ID("create"))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	ctx := handler.WithObserver(t.Context(), func(c *handler.Call) func(error) {
		got = append(got, c.Declaration.ID, c)
		return func(err error) { got = append(got, err) }
	})
	c := changing(d, &handler.Cause{})
	if _, _ = d.Call(t.Context(), c); len(got) != 0 || handler.IsObserved(t.Context()) {
		t.Errorf("calls are observed without an observer: %v", got)
	}
	if _, _ = d.Call(ctx, c); len(got) != 3 || got[0] != "create" || got[1] != c || !errors.Is(got[2].(error), failure) || !handler.IsObserved(ctx) {
		t.Errorf("got %v", got)
	}
}
