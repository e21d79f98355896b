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
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/test/testenv"
)

// world is an operator whose objects have a daemon, a timer, an index entry, and a memo each.
// It counts all of them.
type world struct {
	*gomega.WithT
	namespace string

	daemons atomic.Int64 // running daemons
	calls   atomic.Int64 // calls of timers
	names   *kopf.Index[string, string]

	// Created for each object, and freed with it.
	memos, tasks, ticks, entries census
}

// census counts the values of a kind that the garbage collector has not freed yet.
type census struct{ alive atomic.Int64 }

func register[T any](c *census, thing *T) {
	c.alive.Add(1)
	runtime.AddCleanup(thing, func(c *census) { c.alive.Add(-1) }, c)
}

// note is large enough for a separate allocation.
type note struct{ text [64]byte }

func (w *world) declare(registry *kopf.Registry) {
	examples := kopf.Resource("kopf.dev", "v1", "kopfexamples")
	memos := memo.New(nil, func(*note) *note {
		made := &note{}
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

// wave creates all objects, and deletes them when they are complete.
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

// each calls a function for every object, several at a time.
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

// left returns the number of values that were not freed.
func (w *world) left() map[string]int64 {
	runtime.GC()
	return map[string]int64{
		"memos": w.memos.alive.Load(), "tasks": w.tasks.alive.Load(),
		"ticks": w.ticks.alive.Load(), "entries": w.entries.alive.Load(),
	}
}

// heap returns the memory in use after two collections; the second one frees the pools.
func (w *world) heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
