package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
)

// printer prints events instead of posting them.
type printer struct{}

func (printer) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	fmt.Printf("%s %s: %s %s: %s\n", ref.Kind, ref.Name, eventType, reason, message)
}

func ExampleInfo() {
	// A function that handlers call. The context knows which object is handled.
	backUp := func(ctx context.Context) {
		kopf.Info(ctx, "Started", "The backup is running.")
		kopf.Warn(ctx, "Slow", "It takes longer than usual.")
		kopf.Exception(ctx, "Failed", "It is incomplete:", errors.New("the disk is full"))
	}

	// A test can make the context like this.
	ctx := events.WithRecorder(context.Background(), printer{})
	backUp(hierarchy.WithOwner(ctx, hierarchy.Owner{APIVersion: "example.com/v1", Kind: "Database", Name: "main"}))
	// Output:
	// Database main: Normal Started: The backup is running.
	// Database main: Warning Slow: It takes longer than usual.
	// Database main: Error Failed: It is incomplete: the disk is full
}

// What a handler logs is posted as an event of its object, unless the handler or the
// settings say otherwise.
func ExampleLogOnly() {
	connect := func(ctx context.Context, c *kopf.Change) error {
		c.Logger().Info("The server is reached.", "attempt", c.Retry())
		quiet := kopf.LogOnly(c.Logger())
		quiet.Info("The password is renewed.", "user", "admin")
		return prepareTables(log.IntoContext(ctx, quiet)) // logs much
	}
	kopf.OnCreate(kopf.Resource("databases"), connect, kopf.ID("connect"))

	var s kopf.Settings
	s.Posting.Level = slog.LevelError // and no other events than those of errors
	s.Posting.WithoutLogs = true      // nor those that are lines of the log
}

func prepareTables(ctx context.Context) error {
	log.FromContext(ctx).Info("A table is there.", "name", "users")
	return nil
}
