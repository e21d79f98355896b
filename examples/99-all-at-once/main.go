// This example uses almost everything at once. It is no model for an operator; it shows that
// the parts fit together, and where each of them is declared.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// The operator as a whole.

func configure(_ context.Context, s *kopf.Startup) error {
	s.Settings().Posting.Level = slog.LevelWarn
	return nil
}

func uptime(started time.Time) func(context.Context, *kopf.Activity) (any, error) {
	return func(context.Context, *kopf.Activity) (any, error) {
		return time.Since(started).Round(time.Second).String(), nil
	}
}

func farewell(_ context.Context, a *kopf.Activity) error {
	a.Logger().Info("All handlers have ended.")
	return nil
}

// Memory: an index of the names of all objects, by their field.

var byField = kopf.NewIndex(kopf.DefaultRegistry, kopf.Resource("kopfexamples"), indexField)

func indexField(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
	field, _ := i.Spec().String("field")
	return map[string]string{field: i.Name()}, nil
}

// Changes.

// createFn is retried once, divides its work, and posts an event.
func createFn(ctx context.Context, c *kopf.Change) error {
	if c.Retry() == 0 {
		return kopf.Temporary(errors.New("not yet"), 100*time.Millisecond)
	}
	for _, item := range []string{"a", "b"} {
		c.Subhandler(item, func(_ context.Context, c *kopf.Change) error {
			c.SetResult(item)
			return nil
		})
	}
	kopf.Info(ctx, "Created", "The object is created.")
	return nil
}

func fieldFn(_ context.Context, c *kopf.Change) error {
	field, _ := c.New().Text()
	c.SetResult(map[string]any{"objectsWithThisField": len(byField.Get(field))})
	return nil
}

func deleteFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is being deleted.", "reason", c.Reason())
	return nil
}

// Background.

func daemonFn(_ context.Context, t *kopf.Task) error {
	t.Logger().Info("The daemon starts.")
	<-t.Stopped()
	t.Logger().Info("The daemon stops.", "reason", t.StopReason().String())
	return nil
}

func timerFn(_ context.Context, t *kopf.Tick) error {
	t.Patch().Set(true, "status", "ticked")
	return nil
}

// Events of the watch, and admission.

func eventFn(_ context.Context, e *kopf.WatchEvent) error {
	e.Logger().V(1).Info("A watch event was received.", "type", e.Type())
	return nil
}

func checkField(_ context.Context, a *kopf.Admission) error {
	if field, _ := a.Spec().String("field"); field == "" {
		return kopf.Reject(fmt.Sprintf("%s needs a field.", a.Name()), 422)
	}
	return nil
}

func main() {
	kopf.OnStartup(configure)
	kopf.OnProbe(uptime(time.Now()), kopf.ID("uptime"))
	kopf.OnCleanup(farewell)

	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn, kopf.Retries(3))
	kopf.OnResume(kex, createFn)
	kopf.OnField(kex, "spec.field", fieldFn)
	kopf.OnDelete(kex, deleteFn, kopf.Optional())
	kopf.Daemon(kex, daemonFn, kopf.CancellationTimeout(time.Second))
	kopf.Timer(kex, timerFn, kopf.Interval(time.Minute))
	kopf.OnEvent(kex, eventFn)
	kopf.OnValidate(kex, checkField, kopf.Operations("CREATE", "UPDATE"))

	kopf.Main(func(o *kopf.Options) {
		o.Settings.Admission.Server = servers.Auto(servers.Server{})
		o.Settings.Admission.Managed = "all.kopf.dev"
	})
}
