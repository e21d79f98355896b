//go:build !race

// The race detector needs additional memory.

package reconcile

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Thousands of handlers can wait. The shallow stack of a call takes 4 KB; with a run of the
// engine in it, it would take 16 KB. Sometimes the runtime begins goroutines with twice of what
// they need, because the others needed that. What is decoded of an object of 2 KB would take 4 KB
// for a creation, and 10 KB for an update, if it were kept. At rest, an object takes less than before it was handled, when there
// was nothing in it twice: that is a part of the difference.
func TestWaitingHandlerTakesLittleMemory(t *testing.T) {
	if !alone(t) {
		return
	}
	const objects = 1000
	tests := map[string]struct {
		declare func(fn handler.Function) (*handler.Declaration, error)
		limit   int64 // bytes, besides the stack
	}{
		"of a creation": {func(fn handler.Function) (*handler.Declaration, error) {
			return handler.Create(selector.New("as"), fn, handler.ID("fn"))
		}, 3200},
		"of an update, which holds the former state": {func(fn handler.Function) (*handler.Declaration, error) {
			return handler.Update(selector.New("as"), fn, handler.ID("fn"))
		}, 6000},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var j journal
			fn := handlertest.Function(func(ctx context.Context, c *handler.Call) error {
				readAll(c)
				return j.waits(time.Hour)(ctx, c)
			})
			inCluster(t, func(r *registry.Registry) { r.Add(test.declare(fn)) }, func(t *testing.T, c *cluster) {
				heap, stack := measureWaiting(c, &j, objects)
				if heap > test.limit || stack > 9000 {
					t.Errorf("a waiting handler takes %d bytes, more than %d, or too large a stack of %d", heap, test.limit, stack)
				}
			})
		})
	}
}

// measureWaiting creates and changes objects until their handlers wait, and returns the memory of
// each, compared with the objects at rest.
func measureWaiting(c *cluster, j *journal, objects int) (heap, stack int64) {
	c.t.Helper()
	for i := range objects {
		raw := handledObject(c.t, i).Body().Raw()
		c.put("as", m{"metadata": m{"name": fmt.Sprint("object-", i), "namespace": "ns", "uid": fmt.Sprint(i), "labels": m{"app": "example"}}, "spec": raw["spec"]})
	}
	settle(time.Minute)
	if j.running == 0 {
		for i := range objects {
			c.change("as", fmt.Sprint("object-", i), m{"replicas": int64(17)})
		}
		settle(time.Minute)
	}
	if j.running != objects {
		c.t.Errorf("%d handlers wait", j.running)
	}
	waiting, stacks := heapAndStacks()
	settle(2 * time.Hour)
	rest, others := heapAndStacks()
	return (waiting - rest) / int64(objects), (stacks - others) / int64(objects)
}

// readAll reads what a handler can read. It keeps nothing.
func readAll(c *handler.Call) {
	_, _, _ = c.Transition().Old.Any(), c.Transition().New.Any(), c.Transition().Diff
	_, _ = c.Body().Spec().Map(), c.Body().Meta().Map()
}

// Handlers may keep their arguments: they see the values of their call, although neither these
// nor the object are kept.
func TestKeptArgumentsStayTheSame(t *testing.T) {
	var kept []*handler.Call
	inCluster(t, func(r *registry.Registry) {
		r.Add(handler.Update(selector.New("as"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
			kept = append(kept, c)
			return nil
		}), handler.ID("fn")))
	}, func(t *testing.T, c *cluster) {
		c.create("as", "one")
		settle(time.Minute)
		for size := range 3 {
			c.change("as", "one", m{"size": int64(size)})
			settle(time.Minute)
			runtime.GC()
		}
		if len(kept) != 3 {
			t.Errorf("%d calls", len(kept))
		}
		for size, call := range kept {
			before, after := m{}, m{"size": int64(size)}
			if size > 0 {
				before["size"] = int64(size - 1)
			}
			if got, _ := object.Lookup(call.OldEssence(), object.Path{"spec"}); !object.Equal(got, before) {
				t.Errorf("old: got %v, want %v", got, before)
			}
			if !call.Transition().New.Equals(m{"spec": after}) || !object.Equal(call.Body().Spec().Map(), after) || len(call.Transition().Diff) != 1 {
				t.Errorf("new: got %v, %v, %v; want %v", call.Transition().New, call.Body().Spec(), call.Transition().Diff, after)
			}
		}
	})
}
