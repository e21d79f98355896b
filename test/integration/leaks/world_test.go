package leaks

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// world is an operator with objects that have a daemon, a timer, an entry of an
// index and a memo each. It knows how many of them there are.
type world struct {
	*gomega.WithT
	namespace string

	daemons atomic.Int64 // that run
	calls   atomic.Int64 // of timers
	names   *kopf.Index[string, string]

	// What is made for one object, and has to go with it.
	memos, tasks, ticks, entries census
}

// census counts how many of a kind the garbage collector has yet to collect.
type census struct{ alive atomic.Int64 }

func register[T any](c *census, thing *T) {
	c.alive.Add(1)
	runtime.AddCleanup(thing, func(c *census) { c.alive.Add(-1) }, c)
}

// memo is big enough for an allocation of its own.
type memo struct{ text [64]byte }

func (w *world) declare(registry *kopf.Registry) {
	examples := kopf.Resource("kopf.dev", "v1", "kopfexamples")
	memos := kopf.NewMemo(nil, func(*memo) *memo {
		made := &memo{}
		register(&w.memos, made)
		return made
	})
	w.names = kopf.NewIndex(registry, examples, func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
		register(&w.entries, i)
		return map[string]string{i.Name(): string(memos.Of(i).text[:])}, nil
	}, kopf.ID("names"))
	registry.OnEvent(examples, func(_ context.Context, e *kopf.WatchEvent) error {
		_ = memos.Of(e)
		return nil
	}, kopf.ID("event"))
	registry.Timer(examples, func(_ context.Context, t *kopf.Tick) error {
		register(&w.ticks, t)
		w.calls.Add(1)
		_ = memos.Of(t)
		return nil
	}, kopf.ID("timer"), kopf.Interval(time.Second))
	registry.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
		register(&w.tasks, t)
		_ = memos.Of(t)
		w.daemons.Add(1)
		defer w.daemons.Add(-1)
		for !t.Wait(time.Minute) {
			t.Logger().Info("A minute has passed.")
		}
		return nil
	}, kopf.ID("daemon"))
}

// wave creates all objects, and deletes them when all have what they should have.
func (w *world) wave(t *testing.T) {
	called := w.calls.Load()
	w.each(func(name string) error {
		return cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", w.namespace, name, nil))
	})
	w.Eventually(w.daemons.Load).Should(gomega.BeEquivalentTo(objects))
	w.Eventually(w.calls.Load).Should(gomega.BeNumerically(">=", called+objects))
	w.Eventually(w.names.Len).Should(gomega.Equal(objects))
	w.each(func(name string) error {
		return cluster.Client().Delete(t.Context(), testenv.NewObject("KopfExample", w.namespace, name, nil))
	})
	w.Eventually(w.names.Len).Should(gomega.BeZero())
	w.Eventually(w.daemons.Load).Should(gomega.BeZero())
}

// each does something for every object, several at a time.
func (w *world) each(do func(name string) error) {
	const clients = 16
	var running sync.WaitGroup
	failures := make(chan error, clients)
	for client := range clients {
		running.Go(func() {
			for number := client; number < objects; number += clients {
				if err := do(fmt.Sprintf("o%d", number)); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	running.Wait()
	close(failures)
	w.Expect(<-failures).To(gomega.Succeed())
}

// left is what has not been collected.
func (w *world) left() map[string]int64 {
	runtime.GC()
	return map[string]int64{
		"memos": w.memos.alive.Load(), "tasks": w.tasks.alive.Load(),
		"ticks": w.ticks.alive.Load(), "entries": w.entries.alive.Load(),
	}
}

// heap is what is in use after a collection; what pools held on to goes with the
// second one.
func (w *world) heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
