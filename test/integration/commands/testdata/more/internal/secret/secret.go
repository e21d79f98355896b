// Package secret is what only the packages beside it may import.
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
