// All kinds of handlers of one resource.
//
// What was handled is remembered on the object itself. Hence an object that was
// changed or deleted while no operator was running is handled by the next one.
package main

import (
	"context"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func createFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is new.", "new", c.New().String())
	return nil
}

func updateFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object has changed.", "diff", c.Diff().String())
	return nil
}

// The object gets a finalizer, and is not gone before this has succeeded.
func deleteFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is about to go.")
	return nil
}

// One function under several decorators is one handler. It is called once, also
// when an object was changed while no operator was running, and is both updated
// and resumed.
func careFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is in our care.", "reason", c.Reason())
	return nil
}

// Old, New and Diff are those of the field alone.
func fieldFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The field has changed.", "old", c.Old().String(), "new", c.New().String())
	return nil
}

// Every watch event, also those in which nothing essential has happened, such as
// the operator's own writes. Its errors are logged, and it is never retried.
func eventFn(_ context.Context, e *kopf.WatchEvent) error {
	e.Logger().Info("Something has happened.", "type", e.Type(), "version", e.Body().ResourceVersion())
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.OnUpdate(kex, updateFn)
	kopf.OnDelete(kex, deleteFn)
	kopf.OnCreate(kex, careFn)
	kopf.OnUpdate(kex, careFn)
	kopf.OnResume(kex, careFn)
	kopf.OnField(kex, "spec.field", fieldFn)
	kopf.OnEvent(kex, eventFn)
	kopf.Main()
}
