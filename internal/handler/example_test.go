package handler_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func resize(_ context.Context, c *handler.Call) error {
	fmt.Println("resized from", c.Transition().Old, "to", c.Transition().New)
	return nil
}

// The facade creates declarations from functions, and the engine queries them.
func ExampleUpdate() {
	d, err := handler.Update(selector.New("databases"), functionOf(resize),
		handler.Field("spec.size"), handler.ValueAfter(handler.None(handler.Equal(0))), handler.Retries(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	o := occasion(cause.Update, m{"spec": m{"size": int64(1)}}, m{"spec": m{"size": int64(2)}})
	fmt.Println(d.ID, d.Selects(o))
	_, err = d.Call(context.Background(), handler.NewChange(d, o.CallContext, handler.Attempt{}, nil, o.Reason, func() *handler.Cause { return o }))
	fmt.Println(err)
	// Output:
	// resize/spec.size true
	// resized from 1 to 2
	// <nil>
}

func ExampleTemporary() {
	err := fmt.Errorf("the volume: %w", handler.Temporary(errors.New("it is not bound yet"), time.Minute))
	var temporary *handler.TemporaryError
	if errors.As(err, &temporary) {
		fmt.Println(err, "- again in", temporary.Delay)
	}
	// Output: the volume: it is not bound yet - again in 1m0s
}

func ExampleIsPermanent() {
	fmt.Println(handler.IsPermanent(handler.Permanent(errors.New("spec.size must be set"))))
	fmt.Println(handler.IsPermanent(errors.New("a fault in the network")))
	// Output:
	// true
	// false
}
