package kopf_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/memo"
)

// database must be opened and closed.
type database struct {
	mu   sync.Mutex
	rows map[string]string
}

// db is one value for the operator and all its objects.
var db = memo.New(func() *database { return &database{} }, nil)

// A startup handler opens a database for the other handlers, and changes the settings. A
// cleanup handler closes the database. In between, a probe reports its state.
func ExampleOnStartup() {
	registry := kopf.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	registry.OnStartup(func(_ context.Context, s *kopf.Startup) error {
		db.Of(s).rows = map[string]string{"a": "b"}
		s.Settings().Execution.Workers = 10
		fmt.Println("opened")
		cancel() // enough for an example
		return nil
	}, kopf.ID("open"), kopf.Retries(3), kopf.Backoff(time.Second))
	registry.OnProbe(func(_ context.Context, a *kopf.Activity) (any, error) {
		database := db.Of(a)
		database.mu.Lock()
		defer database.mu.Unlock()
		return len(database.rows), nil
	}, kopf.ID("rows"))
	registry.OnCleanup(func(_ context.Context, a *kopf.Activity) error {
		fmt.Println("closed, with", len(db.Of(a).rows), "row")
		return nil
	}, kopf.ID("close"))

	err := kopf.Run(ctx, kopf.Options{Registry: registry, Config: &rest.Config{Host: "http://127.0.0.1:1"}})
	fmt.Println(err)
	// Output:
	// opened
	// closed, with 1 row
	// <nil>
}
