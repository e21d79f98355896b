// This example changes something in steps that must follow each other: a database is backed up,
// scaled down, upgraded, and scaled up again. If one of the steps after the backup fails for good, the
// backup is restored, and the database is scaled up.
//
// Each handler waits until the handlers of kopf.After have succeeded, or until one of those of
// kopf.AfterFailure has failed. Handlers whose turn never comes are skipped: the log says why, and so does
//
//	go run . explain kopfexample kopf-example-1
//
// The success of a step is stored before the next one begins, so a restart continues with the step
// that it has interrupted.
package main

import (
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// step makes one step, and fails if the object says so.
func step(_ context.Context, c *kopf.Change) error {
	for failed, why := range c.Failures() {
		c.Logger().Info("Another step has failed.", "step", failed, "error", why)
	}
	broken, _ := c.Spec().String("broken")
	if broken == c.Param() {
		return kopf.Permanent(errors.New("the step is broken"))
	}
	c.Logger().Info("The step is done.", "step", c.Param())
	return nil
}

func declare(r *kopf.Registry, step func(context.Context, *kopf.Change) error) {
	version := kopf.Field("spec.version")
	add := func(name string, options ...kopf.ChangeOption) {
		r.OnUpdate(kopf.Resource("kopfexamples"), step, append(options, kopf.ID(name), kopf.Param(name), version)...)
	}
	add("backup")
	add("scale-down", kopf.After("backup"))
	add("upgrade", kopf.After("scale-down"))
	add("scale-up", kopf.After("upgrade"))

	// The way back.
	add("restore", kopf.AfterFailure("scale-down", "upgrade", "scale-up"))
	add("scale-up-again", kopf.After("restore"))
}

func main() {
	declare(kopf.DefaultRegistry, step)
	kopf.Main()
}
