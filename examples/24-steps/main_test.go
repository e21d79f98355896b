package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// The operator is killed at every write, and the steps keep their order.
func TestStepsKeepTheirOrderInCrashes(t *testing.T) {
	for broken, want := range map[string][]string{
		"":        {"backup", "scale-down", "upgrade", "scale-up"},
		"upgrade": {"backup", "scale-down", "restore", "scale-up-again"},
	} {
		t.Run("broken: "+broken, func(t *testing.T) {
			kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
				var mu sync.Mutex
				var done []string // of each step, the first time
				newRegistry := func() *kopf.Registry {
					r := kopf.NewRegistry()
					declare(r, func(ctx context.Context, c *kopf.Change) error {
						err := step(ctx, c)
						name, _ := c.Param().(string)
						mu.Lock()
						defer mu.Unlock()
						if err == nil && !slices.Contains(done, name) {
							done = append(done, name)
							kopftest.Effect(ctx, name)
						}
						return err
					})
					return r
				}
				h := kopftest.New(t, newRegistry, fault, kopftest.CRDs("../crd"))
				database := kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: one, namespace: ns}, spec: {version: "1"}}`)
				h.Create(database)
				h.Settle()
				h.Patch(database, `{"spec": {"version": "2", "broken": "`+broken+`"}}`)
				h.Advance(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(done, want) {
					t.Errorf("got %v, want %v", done, want)
				}
			})
		})
	}
}
