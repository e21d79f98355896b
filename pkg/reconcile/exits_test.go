package reconcile

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Code of users that ends its goroutine, as t.FailNow does, has failed like code that returns an
// error. It takes no worker, no slot, and no lock with it.
func TestCodeThatEndsItsGoroutineHasFailed(t *testing.T) {
	as := selector.New("as")
	var exits atomic.Int32
	// exit ends the goroutine the first three times, for the object "bad".
	exit := func(name string) {
		if name == "bad" && exits.Add(1) <= 3 {
			runtime.Goexit()
		}
	}
	tests := map[string]func(r *registry.Registry, c *Config){
		"a handler": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Create(as, handlertest.Function(func(_ context.Context, c *handler.Call) error {
				exit(c.Name())
				return nil
			}), handler.ID("other"), handler.Limit(1)))
		},
		"a sub-handler": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Create(as, handlertest.Function(func(_ context.Context, c *handler.Call) error {
				handlertest.Subhandler(c, "sub", func(_ context.Context, c *handler.Call) error {
					exit(c.Name())
					return nil
				}, handler.Limit(1))
				return nil
			}), handler.ID("other"), handler.Limit(1)))
		},
		"a sub-handler that is executed": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Create(as, handlertest.Function(func(ctx context.Context, c *handler.Call) error {
				handlertest.Subhandler(c, "sub", func(_ context.Context, c *handler.Call) error {
					exit(c.Name())
					return nil
				}, handler.Limit(1))
				return c.Execute(ctx)
			}), handler.ID("other"), handler.Limit(1)))
		},
		"a filter": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Create(as, handlertest.Function(ignoreChange), handler.ID("other"), handlertest.When(func(a *handler.Call) bool {
				exit(a.Name())
				return true
			})))
		},
		"an event handler": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Watch(as, handlertest.Function(func(_ context.Context, e *handler.Call) error {
				exit(e.Name())
				return nil
			}), handler.ID("other")))
		},
		"a transformation": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Create(as, handlertest.Function(func(_ context.Context, c *handler.Call) error {
				c.Context.Patch.Apply(func(obj *unstructured.Unstructured) error {
					exit(obj.GetName())
					return nil
				})
				return nil
			}), handler.ID("other")))
		},
		"a timer": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Timer(as, handlertest.Function(func(_ context.Context, c *handler.Call) error {
				exit(c.Name())
				return nil
			}), handler.ID("other"), handler.Interval(time.Minute)))
		},
		"a daemon": func(r *registry.Registry, _ *Config) {
			r.Add(handler.Daemon(as, handlertest.Function(func(_ context.Context, c *handler.Call) error {
				exit(c.Name())
				return nil
			}), handler.ID("other")))
		},
		"a lifecycle": func(_ *registry.Registry, c *Config) {
			c.Settings.Execution.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due {
				exit(due[0].Object.Name())
				return due
			}
		},
		"a storage": func(_ *registry.Registry, c *Config) {
			c.Settings.Persistence.Progress = exitingStorage{storage.AnnotationsProgress{}, exit}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			exits.Store(0)
			var j journal
			inCluster(t, func(r *registry.Registry) {
				r.Add(handler.Create(as, j.waiting(time.Second), handler.ID("fn")))
				test(r, &Config{})
			}, func(t *testing.T, c *cluster) {
				c.createAll("as", []string{"bad", "good"})
				settle(time.Hour)
				c.expectHandled("as", "bad", "good")
				if exits.Load() == 0 {
					t.Error("it was not called")
				}
				if (name == "a timer" || name == "a daemon") && exits.Load() <= 3 {
					t.Errorf("it was called only %d times", exits.Load())
				}
				slices.Sort(j.ended)
				if !slices.Equal(j.ended, []string{"bad", "good"}) {
					t.Errorf("the other handler was called for %v", j.ended)
				}
			}, fewWorkers, func(c *Config) {
				test(&registry.Registry{}, c)
			})
		})
	}
}

// exitingStorage calls a function when it fetches the progress of an object.
type exitingStorage struct {
	storage.Progress
	exit func(name string)
}

func (s exitingStorage) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	s.exit(body.Name())
	return s.Progress.Fetch(ctx, body, id)
}

// A sub-handler is registered in two branches of an if, each with its own limit. An object
// changes the branch while it waits.
func TestHandlerThatChangesItsLimitLeavesNoSlotBehind(t *testing.T) {
	var j journal
	sub := j.waits(10 * time.Second)
	inCluster(t, func(r *registry.Registry) {
		parent := handlertest.Function(func(_ context.Context, c *handler.Call) error {
			if other, _ := c.Body().Spec().Bool("other"); other {
				handlertest.Subhandler(c, "sub", sub, handler.Limit(1), handler.Timeout(time.Hour))
			} else {
				handlertest.Subhandler(c, "sub", sub, handler.Limit(1))
			}
			return nil
		})
		r.Add(handler.Create(selector.New("as"), parent, handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.createAll("as", []string{"one", "two"})
		settle(time.Second) // two waits
		c.change("as", "two", map[string]any{"other": true})
		settle(time.Minute)
		c.create("as", "three")
		settle(time.Minute)
		c.expectHandled("as", "one", "two", "three")
	})
}
