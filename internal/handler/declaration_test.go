package handler_test

import (
	"context"
	"errors"
	"slices"
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
	observed := &observer{}
	ctx := handler.WithObserver(t.Context(), observed)
	c := changing(d, &handler.Cause{})
	_, _ = d.Call(t.Context(), c)
	handler.ObserveFailure(t.Context(), c, failure)
	if len(observed.saw) != 0 || handler.IsObserved(t.Context()) {
		t.Errorf("calls are observed without an observer: %v", observed.saw)
	}
	_, _ = d.Call(ctx, c)
	refused := errors.New("refused")
	handler.ObserveFailure(ctx, c, refused)
	want := []any{"create", c, failure, c, refused}
	if !slices.Equal(observed.saw, want) || !handler.IsObserved(ctx) {
		t.Errorf("got %v", observed.saw)
	}
}

type observer struct{ saw []any }

func (o *observer) Begin(c *handler.Call) func(error) {
	o.saw = append(o.saw, c.Declaration.ID, c)
	return func(err error) { o.saw = append(o.saw, err) }
}

func (o *observer) Fail(c *handler.Call, err error) { o.saw = append(o.saw, c, err) }
