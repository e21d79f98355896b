// This is the smallest operator: it greets every new object.
package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func createFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("And here we are!", "spec", c.Spec().Map())
	return nil
}

func main() {
	kopf.OnCreate(kopf.Resource("kopfexamples"), createFn)
	kopf.Main()
}
