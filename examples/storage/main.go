// This example keeps the state of the operator in a file instead of annotations:
// for objects that must not be annotated, or whose annotations are full.
//
// The file is $STATE_FILE. An operator that starts with the file of an earlier one
// continues where that one stopped. It forgets objects that are gone: the storages hear that, and
// the operator looks at its start for those that have disappeared meanwhile.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func createFn(_ context.Context, c *kopf.Change) error {
	if c.Retry() == 0 {
		return kopf.Temporary(errors.New("restart the operator now: it will continue"), 3*time.Second)
	}
	c.Logger().Info("The object is created.", "retry", c.Retry())
	return nil
}

func updateFn(_ context.Context, c *kopf.Change) error {
	c.Logger().Info("The object is updated.", "diff", c.Diff().String())
	return nil
}

// declare declares the handlers of an operator with the file.
func declare(r *kopf.Registry, states file) {
	kex := kopf.Resource("kopfexamples")
	r.OnCreate(kex, createFn)
	r.OnUpdate(kex, updateFn)
	r.OnStartup(func(ctx context.Context, s *kopf.Startup) error {
		forgotten, err := states.sweep(ctx, s.Client())
		s.Logger().Info("The file has forgotten the objects that are gone.", "objects", forgotten)
		return err
	}, kopf.ID("sweep"))
}

func main() {
	path := cmp.Or(os.Getenv("STATE_FILE"), filepath.Join(os.TempDir(), "kopf-example-storage.db"))
	states, err := openFile(path)
	if err != nil {
		log.Fatalf("the state file %s cannot be opened: %v", path, err)
	}
	declare(kopf.DefaultRegistry, states)
	kopf.Main(func(o *kopf.Options) { states.use(&o.Settings) })
}

// use stores the state of the operator in the file.
func (f file) use(s *kopf.Settings) {
	s.Persistence.DiffBase = fileDiffBase{f}
	s.Persistence.Progress = fileProgress{f}
}
