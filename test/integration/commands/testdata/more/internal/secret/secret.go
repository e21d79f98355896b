// Package secret can be imported only by its sibling packages.
package secret

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func init() { kopf.OnCreate(kopf.Resource("kopfexamples"), whisper) }

func whisper(_ context.Context, c *kopf.Change) error {
	c.SetResult("psst")
	return nil
}
