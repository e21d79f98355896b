// This example filters the objects and the changes that handlers are called for. Each
// handler that is called writes its id to the status, except for the daemon: it logs when it
// starts and stops.
//
// The operator does not touch objects that match no handler. When such an object matches
// later, it is handled as a new one.
package main

import (
	"context"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

func called(_ context.Context, c *kopf.Change) error {
	c.SetResult("called")
	return nil
}

func beginsWithSome(value object.Value, _ kopf.Arguments) bool {
	text, _ := value.Text() // empty if there is no such label
	return strings.HasPrefix(text, "some")
}

func fieldIsInItems(a kopf.Arguments) bool {
	field, _ := a.Spec().String("field")
	items, _ := a.Spec().Strings("items")
	return slices.Contains(items, field)
}

func isSystem(a kopf.Arguments) bool { return strings.HasPrefix(a.Name(), "system-") }

// follow runs in the background of an object for as long as the filters of the daemon match.
func follow(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("The daemon starts.")
	<-t.Stopped()
	t.Logger().Info("The daemon stops.", "reason", t.StopReason().String())
	return nil
}

func main() {
	kex := kopf.Resource("kopfexamples")
	label := func(filter kopf.Matcher) kopf.Option {
		return kopf.Labels(map[string]kopf.Matcher{"somelabel": filter})
	}
	mark := func(filter kopf.Matcher) kopf.Option {
		return kopf.Annotations(map[string]kopf.Matcher{"someannotation": filter})
	}
	// By labels and annotations: values, presence and absence, callbacks.
	kopf.OnCreate(kex, called, kopf.ID("equal"), label(kopf.Equal("somevalue")), mark(kopf.Equal("somevalue")))
	kopf.OnCreate(kex, called, kopf.ID("present"), label(kopf.Present()))
	kopf.OnCreate(kex, called, kopf.ID("absent"), mark(kopf.Absent()))
	kopf.OnCreate(kex, called, kopf.ID("match"), label(kopf.MatchFunc(beginsWithSome)))
	kopf.OnCreate(kex, called, kopf.ID("not"), label(kopf.All(kopf.Present(), kopf.Not(kopf.Equal("somevalue")))))
	// By the whole object, and all other arguments of the handler.
	kopf.OnCreate(kex, called, kopf.ID("when"), kopf.When(fieldIsInItems))
	kopf.OnCreate(kex, called, kopf.ID("none"), kopf.When(kopf.None(fieldIsInItems, isSystem)))
	// By the current value of a field. The field is appended to the id: equal/spec.field.
	field := kopf.Field("spec.field")
	kopf.OnCreate(kex, called, kopf.ID("equal"), field, kopf.Value(kopf.Any(kopf.Equal("hello"), kopf.Equal("world"))))
	// By the change of a field. Value would match the old value or the new one.
	kopf.OnUpdate(kex, called, kopf.ID("changed"), field)
	kopf.OnUpdate(kex, called, kopf.ID("greeted"), field, kopf.ValueBefore(kopf.Equal("hello")), kopf.ValueAfter(kopf.Equal("world")))
	kopf.OnUpdate(kex, called, kopf.ID("added"), field, kopf.ValueBefore(kopf.Absent()), kopf.ValueAfter(kopf.Present()))
	kopf.OnUpdate(kex, called, kopf.ID("removed"), field, kopf.ValueBefore(kopf.Present()), kopf.ValueAfter(kopf.Absent()))
	// While a field has a value. The filters of daemons are checked at every change of the object.
	kopf.Daemon(kex, follow, field, kopf.Value(kopf.Equal("world")))
	kopf.Main()
}
