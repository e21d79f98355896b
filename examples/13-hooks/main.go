// This example has handlers of the operator as a whole. It opens a database at startup,
// shares it with all handlers, reports on it in its health endpoint, and closes it at
// shutdown.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// store holds the database of the operator. It is a memo, because all operators of a program
// would share a variable. Without a function that copies it, all objects have the memo of
// the operator.
var store = kopf.NewMemo(func() *database { return &database{} }, nil)

// The operator watches nothing before this handler has succeeded. Startup handlers are
// retried: a database may start later than its clients.
func open(_ context.Context, s *kopf.Startup) error {
	if s.Retry() == 0 {
		return kopf.Temporary(errors.New("the database is not there yet"), 100*time.Millisecond)
	}
	return store.Operator(s).open()
}

// Startup handlers are called in order, and may change the settings. If one of them fails
// permanently, the operator stops before it has done anything.
func configure(_ context.Context, s *kopf.Startup) error {
	if os.Getenv("DATABASE_OWNER") == "nobody" {
		return kopf.Permanent(errors.New("the database needs an owner: set DATABASE_OWNER"))
	}
	s.Settings().Execution.Backoff = backoff.Exponential(time.Second, time.Minute)
	s.Settings().Persistence.Finalizer = "example.com/in-the-database"
	return nil
}

func createFn(_ context.Context, c *kopf.Change) error {
	return store.Of(c).put(string(c.UID()), c.Name())
}

func deleteFn(_ context.Context, c *kopf.Change) error {
	return store.Of(c).put(string(c.UID()), "")
}

// The health endpoint shows the result under "rows"; an error makes the operator unhealthy.
// The flag --liveness=127.0.0.1:8080 turns the endpoint on.
func rows(_ context.Context, a *kopf.Activity) (any, error) {
	return store.Operator(a).count()
}

// No handlers are running now, and the next operator has not started yet.
func closeStore(_ context.Context, a *kopf.Activity) error {
	count, err := store.Operator(a).close()
	a.Logger().Info("The database is closed.", "rows", count)
	return err
}

func main() {
	kopf.OnStartup(configure)
	kopf.OnStartup(open)
	kopf.OnProbe(rows)
	kopf.OnCleanup(closeStore)
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.OnResume(kex, createFn) // the database is in memory
	kopf.OnDelete(kex, deleteFn)
	kopf.Main()
}
