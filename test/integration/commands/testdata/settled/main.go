// This program settles in its code what a flag can say, too.
package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	kopf.OnCreate(kopf.Resource("kopf.dev", "v1", "kopfexamples"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("create"))
	kopf.Main(func(o *kopf.Options) { o.Settings.Execution.Workers = 3 })
}
