// This example has handlers of all kinds for one resource.
//
// The last handled state is stored on the object. So if an object is changed or deleted
// while no operator is running, the next operator handles that.
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

// deleteFn is called before the object is deleted: a finalizer holds the object until the
// handler has succeeded.
func deleteFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is being deleted.")
	return nil
}

// careFn is declared several times, but is one handler. It is called once, even if an object
// was changed while no operator was running, and is both updated and resumed.
func careFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The operator takes care of the object.", "reason", c.Reason())
	return nil
}

// fieldFn gets Old, New, and Diff of the field only.
func fieldFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The field has changed.", "old", c.Old().String(), "new", c.New().String())
	return nil
}

// eventFn is called for every watch event, including those without essential changes, such
// as the operator's own writes. Its errors are logged, and it is never retried.
func eventFn(_ context.Context, e *kopf.WatchEvent) error {
	e.Logger().Info("The operator received a watch event.", "type", e.Type(), "version", e.Body().ResourceVersion())
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
