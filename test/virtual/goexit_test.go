package virtual

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Code of users that ends its goroutine, as t.FailNow does, has failed like code that returns an error. It takes no
// worker, no slot, and no lock with it.
func TestCodeThatEndsItsGoroutineHasFailed(t *testing.T) {
	var exits atomic.Int32
	// exit ends the goroutine the first three times, for the object "bad".
	exit := func(name string) {
		if name == "bad" && exits.Add(1) <= 3 {
			runtime.Goexit()
		}
	}
	tests := map[string]struct {
		declare func(r *kopf.Registry)
		option  kopftest.Option
		often   bool // it is called again and again
	}{
		"a handler": {declare: func(r *kopf.Registry) { r.OnCreate(examples, exitingFor(exit), kopf.ID("other"), kopf.Limit(1)) }},
		"a sub-handler": {declare: func(r *kopf.Registry) {
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				c.Subhandler("sub", exitingFor(exit), kopf.Limit(1))
				return nil
			}, kopf.ID("other"), kopf.Limit(1))
		}},
		"a sub-handler that is executed": {declare: func(r *kopf.Registry) {
			r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
				c.Subhandler("sub", exitingFor(exit), kopf.Limit(1))
				return c.Execute(ctx)
			}, kopf.ID("other"), kopf.Limit(1))
		}},
		"a filter": {declare: func(r *kopf.Registry) {
			r.OnCreate(examples, ignore, kopf.ID("other"), kopf.When(func(a kopf.Arguments) bool { exit(a.Name()); return true }))
		}},
		"an event handler": {declare: func(r *kopf.Registry) {
			r.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error { exit(e.Name()); return nil }, kopf.ID("other"))
		}},
		"a transformation": {declare: func(r *kopf.Registry) {
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				c.Patch().Apply(func(obj *unstructured.Unstructured) error { exit(obj.GetName()); return nil })
				return nil
			}, kopf.ID("other"))
		}},
		"a timer": {often: true, declare: func(r *kopf.Registry) {
			r.Timer(examples, func(_ context.Context, c *kopf.Tick) error { exit(c.Name()); return nil }, kopf.ID("other"), kopf.Interval(time.Minute))
		}},
		"a daemon": {often: true, declare: func(r *kopf.Registry) {
			r.Daemon(examples, func(_ context.Context, c *kopf.Task) error { exit(c.Name()); return nil }, kopf.ID("other"))
		}},
		"a lifecycle": {option: kopftest.Settings(func(s *kopf.Settings) {
			s.Execution.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due { exit(due[0].Object.Name()); return due }
		})},
		"a storage": {option: kopftest.Settings(func(s *kopf.Settings) {
			s.Persistence.Progress = exitingStorage{storage.AnnotationsProgress{}, exit}
		})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			exits.Store(0)
			options := []kopftest.Option{fewWorkers()}
			if test.option != nil {
				options = append(options, test.option)
			}
			withOperator(t, func(r *kopf.Registry) {
				r.OnCreate(examples, waits(time.Second), kopf.ID("fn"))
				if test.declare != nil {
					test.declare(r)
				}
			}, func(t *testing.T, h *kopftest.Harness) {
				createAll(h, "", "bad", "good")
				h.Advance(time.Hour)
				expectHandled(t, h, "bad", "good")
				if got := exits.Load(); got == 0 || test.often && got <= 3 {
					t.Errorf("it was called %d times", got)
				}
				if bad := slices.DeleteFunc(h.Calls(), func(c kopftest.HandlerCall) bool {
					return c.Object != "default/bad" || c.Handler != "other" || c.Kind != "create"
				}); name == "a handler" && (len(bad) != 4 || bad[3].Attempt != 4) {
					t.Errorf("got %v, want three attempts that count, and one more", bad)
				}
				if called := slices.Sorted(slices.Values(calledFor(h, "fn"))); !slices.Equal(called, []string{"bad", "good"}) {
					t.Errorf("the other handler was called for %v", called)
				}
			}, options...)
		})
	}
}

// exitingFor returns a handler that calls a function with the name of the object.
func exitingFor(exit func(name string)) func(context.Context, *kopf.Change) error {
	return func(_ context.Context, c *kopf.Change) error {
		exit(c.Name())
		return nil
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
