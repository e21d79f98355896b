// Package handlers declares a handler when it is imported. It is not a program.
package handlers

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func init() { kopf.OnCreate(kopf.Resource("kopfexamples"), greet) }

func greet(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("Hello.")
	c.SetResult("hello")
	return nil
}
