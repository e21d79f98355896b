// This example handles watch events: what the API server sends while it streams the changes
// of objects.
//
// Event handlers need no finalizer and no annotations: the operator does not write to the
// objects, unless a handler does. In turn, they miss what happens while no operator is
// running, and their errors are logged and not retried.
package main

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// eventFn is called for every event. The type is empty for objects that existed before the
// operator started.
func eventFn(_ context.Context, e *kopf.WatchEvent) error {
	field, _ := e.Spec().String("field")
	e.Logger().Info("An event was received.", "type", e.Type(), "field", field)
	return nil
}

// failing shows that an error neither stops the other handlers nor repeats the event.
func failing(context.Context, *kopf.WatchEvent) error {
	return errors.New("the notification service does not respond")
}

// farewell cannot do anything for the object, because it is gone: a deletion handler would
// hold it.
func farewell(_ context.Context, e *kopf.WatchEvent) error {
	e.Logger().Info("The object is gone.")
	return nil
}

// isGone is a filter. It gets the arguments of the handler.
func isGone(a kopf.Arguments) bool {
	event, isEvent := a.(*kopf.WatchEvent)
	return isEvent && event.Type() == watch.Deleted
}

// mirror writes to the object, which causes another event. It must come to rest: that event
// leads to the same patch, which changes nothing and is not sent.
func mirror(_ context.Context, e *kopf.WatchEvent) error {
	field, _ := e.Spec().String("field")
	e.Patch().Set(field, "status", "mirrored")
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	kopf.OnEvent(kex, eventFn)
	kopf.OnEvent(kex, failing)
	kopf.OnEvent(kex, farewell, kopf.When(isGone))
	kopf.OnEvent(kex, mirror, kopf.Labels(map[string]kopf.Matcher{"mirrored": kopf.Equal("yes")}))
	kopf.Main()
}
