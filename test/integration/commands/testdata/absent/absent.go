// Package absent uses a resource that no cluster has.
package absent

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func init() { kopf.OnCreate(kopf.Resource("nonsense"), ignore) }

func ignore(context.Context, *kopf.Change) error { return nil }
