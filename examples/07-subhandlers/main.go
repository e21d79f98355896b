// Sub-handlers: work that is found in the object, such as the items of a list,
// with progress, retries and a result for each of its pieces.
//
// A handler is called again until all its sub-handlers are done, and registers
// the same ones each time. Hence it does nothing else before that.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

type item struct {
	Name  string
	Parts []string
}

func createFn(ctx context.Context, c *kopf.Change) error {
	var items []item
	if err := c.Spec().Decode(&items, "items"); err != nil {
		return kopf.Permanent(err)
	}
	for _, item := range items {
		c.Subhandler(item.Name, item.create, kopf.Retries(5))
	}
	// The sub-handlers would run after the return. What is to come after them
	// asks for them here and now, and goes on when all of them are done.
	if err := c.Execute(ctx); err != nil {
		return err
	}
	c.SetResult(map[string]any{"items": len(items)})
	return nil
}

// Sub-handlers can have sub-handlers.
func (i item) create(_ context.Context, c *kopf.Change) error {
	for _, part := range i.Parts {
		c.Subhandler(part, i.createPart, kopf.Param(part))
	}
	return nil
}

// The right parts are slow. The left ones do not wait, and are not made again.
func (i item) createPart(_ context.Context, c *kopf.Change) error {
	if c.Param() == "right" && c.Retry() == 0 {
		return kopf.Temporary(errors.New("this part takes a while"), 500*time.Millisecond)
	}
	c.Logger().Info("A part is made.", "item", i.Name, "part", c.Param())
	c.SetResult("made")
	return nil
}

func main() {
	kopf.OnCreate(kopf.Resource("kopfexamples"), createFn)
	kopf.Main()
}
