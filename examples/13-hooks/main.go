// Hooks: handlers of the operator as a whole. It opens a database when it starts,
// shares it with all handlers, tells of it when it is asked for its health, and closes
// it when it ends.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

// store is the operator's one and only database. A memo is where handlers find it:
// a variable would be shared by all operators of a program. As there is no function
// that copies it, all objects have the operator's own.
var store = kopf.NewMemo(func() *database { return &database{} }, nil)

// Nothing is watched before this has succeeded. It is tried again, too: a database
// may come up later than its users.
func open(_ context.Context, s *kopf.Startup) error {
	if s.Retry() == 0 {
		return kopf.Temporary(errors.New("the database is not there yet"), 100*time.Millisecond)
	}
	return store.Operator(s).open()
}

// Startup handlers are called in their order, and may change the settings. What
// they find wrong with the world ends the operator before it has done anything.
func configure(_ context.Context, s *kopf.Startup) error {
	if os.Getenv("DATABASE_OWNER") == "nobody" {
		return kopf.Permanent(errors.New("the database needs an owner: set DATABASE_OWNER"))
	}
	s.Settings().Execution.Backoff = time.Second
	s.Settings().Persistence.Finalizer = "example.com/in-the-database"
	return nil
}

func createFn(_ context.Context, c *kopf.Change) error {
	return store.Of(c).put(string(c.UID()), c.Name())
}

func deleteFn(_ context.Context, c *kopf.Change) error {
	return store.Of(c).put(string(c.UID()), "")
}

// The result is in the answer to whoever asks for the health, under "rows"; an error
// makes the operator unhealthy. With --liveness=127.0.0.1:8080 it answers.
func rows(_ context.Context, a *kopf.Activity) (any, error) {
	return store.Operator(a).count()
}

// By now no handler runs any longer, and no other operator has begun yet.
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
