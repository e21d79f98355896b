package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// slowBase is a storage that takes its time.
type slowBase struct {
	storage.DiffBase

	wait func()
}

func (b slowBase) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	b.wait()
	return b.DiffBase.Fetch(ctx, body)
}

// Code of users may never return. The workers handle other objects meanwhile, and a pause does not wait.
func TestWorkersDoNotWaitForCodeOfUsers(t *testing.T) {
	sel := selector.New("kopfexamples")
	fn := handlertest.Function(ignoreChange)
	tests := map[string]struct {
		declare  func(r *registry.Registry, wait func())
		settings func(c *Config, wait func())
		edit     bool // an edit waits
		patience time.Duration
	}{
		"a filter": {
			declare: func(r *registry.Registry, wait func()) {
				r.Add(handler.Create(sel, fn, handler.ID("create"), handlertest.When(func(*handler.Call) bool { wait(); return true })))
			},
			patience: workerPatience,
		},
		"the delay of a timer": {
			declare: func(r *registry.Registry, wait func()) {
				r.Add(handler.Timer(sel, fn, handler.ID("timer"), handler.Interval(time.Hour), handler.InitialDelayFunc(func(*handler.Call) time.Duration {
					wait()
					return time.Hour
				})))
			},
			patience: workerPatience,
		},
		"an edit": {
			declare: func(r *registry.Registry, _ func()) {
				r.Add(handler.Update(sel, fn, handler.ID("update"))) // not called
			},
			edit:     true,
			patience: workerPatience,
		},
		"a lifecycle": {
			declare: func(r *registry.Registry, _ func()) { creating(r) },
			settings: func(c *Config, wait func()) {
				c.Settings.Execution.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due { wait(); return due }
			},
			patience: workerPatience,
		},
		"a storage": {
			declare: func(r *registry.Registry, _ func()) { creating(r) },
			settings: func(c *Config, wait func()) {
				c.Settings = c.Settings.WithDefaults()
				c.Settings.Persistence.DiffBase = slowBase{c.Settings.Persistence.DiffBase, wait}
			},
			patience: 100 * time.Millisecond, // then, the permit is lent to others
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				waits := false
				wait := func() { waits = true; <-end }
				l := newLone(t, m{}, func(r *registry.Registry) { test.declare(r, wait) }, func(c *Config) {
					if test.settings != nil {
						test.settings(c, wait)
					}
				})
				l.show()
				if test.edit {
					edit := &patch.Patch{}
					edit.Apply(func(*unstructured.Unstructured) error { wait(); return nil })
					l.state().resetFor("u-1")
					l.state().writes.Add(call.Edit{ID: "timer", Patch: edit})
				}
				began := time.Now()
				result, err := l.Reconcile(t.Context(), keyOf("a"))
				if took := time.Since(began); err != nil || result.RequeueAfter != 0 || took != test.patience {
					t.Errorf("after %s, got %v, %v", took, result, err)
				}
				synctest.Wait()
				if !waits || l.engine.isFree(keyOf("a")) {
					t.Error("the pass has ended")
				}
				close(end)
				l.detached.Wait()
				if l.server.object == nil || !l.isAtRest() || l.engine.permits.Waiting() != 0 {
					t.Error("the pass has not gone on")
				}
				l.engine.supervisor.Stop(context.Background())
			})
		})
	}
}
