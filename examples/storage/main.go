// This example keeps the state of the operator in a file instead of annotations:
// for objects that must not be annotated, or whose annotations are full.
//
// The file is $STATE_FILE. An operator that starts with the file of an earlier one
// continues where that one stopped.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/watch"

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

func main() {
	path := cmp.Or(os.Getenv("STATE_FILE"), filepath.Join(os.TempDir(), "kopf-example-storage.db"))
	states, err := openFile(path)
	if err != nil {
		log.Fatalf("the state file %s cannot be opened: %v", path, err)
	}
	kex := kopf.Resource("kopfexamples")
	kopf.OnCreate(kex, createFn)
	kopf.OnUpdate(kex, updateFn)
	// Annotations are deleted with their object; entries of the file are not. (Those of
	// objects deleted while no operator is running stay in the file.)
	kopf.OnEvent(kex, func(ctx context.Context, e *kopf.WatchEvent) error {
		if e.Type() != watch.Deleted {
			return nil
		}
		return states.forget(ctx, e.UID())
	}, kopf.ID("forget"))
	kopf.Main(func(o *kopf.Options) {
		o.Settings.Persistence.DiffBase = fileDiffBase{states}
		o.Settings.Persistence.Progress = fileProgress{states}
	})
}
