// This example has handlers of the operator as a whole. It opens a database at startup,
// finds the credentials for the cluster, shares the database with all handlers, reports on it
// in its health endpoint, and closes it at shutdown.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/login"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// store holds the database of the operator. It is a memo, because all operators of a program
// would share a variable. Without a function that copies it, all objects have the memo of
// the operator.
var store = memo.New(func() *database { return &database{} }, nil)

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

// A login handler replaces the default login. It is called when the operator first needs the
// cluster, which is after the startup handlers, and again when the credentials are rejected or
// expire. Its Connection can have any credentials of client-go. This one takes the service
// account of the pod, or the context of the kubeconfig that the variable names: by default, the
// current one.
func connect(_ context.Context, a *kopf.Activity) (*login.Connection, error) {
	if inCluster, err := login.ServiceAccount(); inCluster != nil || err != nil {
		return inCluster, err
	}
	name := os.Getenv("LOGIN_CONTEXT")
	a.Logger().Info("The operator logs in.", "context", name)
	return login.Kubeconfig("", name)
}

// probes are declared from a collection. The health endpoint shows the result of each under its
// id; an error makes the operator unhealthy. The flag --liveness=127.0.0.1:8080 turns the
// endpoint on.
var probes = map[string]func(*database) (any, error){
	"rows":    func(d *database) (any, error) { return d.count() },
	"objects": func(d *database) (any, error) { return d.values() },
}

func probe(look func(*database) (any, error)) func(context.Context, *kopf.Activity) (any, error) {
	return func(_ context.Context, a *kopf.Activity) (any, error) { return look(store.Operator(a)) }
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
	kopf.OnLogin(connect)
	for id, look := range probes {
		kopf.OnProbe(probe(look), kopf.ID(id))
	}
	kopf.OnCleanup(closeStore)
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.OnResume(kex, createFn) // the database is in memory
	kopf.OnDelete(kex, deleteFn)
	kopf.Main()
}
