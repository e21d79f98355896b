// This example splits work into sub-handlers, one for each item of a list in the object.
// Each sub-handler has its own progress, retries, and result.
//
// A handler is called again until all its sub-handlers have finished, and registers the
// same sub-handlers each time. So it should do nothing else before that.
//
// The names of the items become ids: letters, digits, and -_./ between them. A name that is no
// valid id, or that occurs twice, fails the handler permanently.
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
	// By default, the sub-handlers are called after the handler returns. Execute calls them
	// now, and returns nil when all of them have finished.
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

// createPart is slow for the right parts. The left parts do not wait for them, and are not
// created again.
func (i item) createPart(_ context.Context, c *kopf.Change) error {
	if c.Param() == "right" && c.Retry() == 0 {
		return kopf.Temporary(errors.New("this part takes a while"), 500*time.Millisecond)
	}
	c.Logger().Info("The part is created.", "item", i.Name, "part", c.Param())
	c.SetResult("made")
	return nil
}

func main() {
	kopf.OnCreate(kopf.Resource("kopfexamples"), createFn)
	kopf.Main()
}
