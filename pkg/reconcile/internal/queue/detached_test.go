package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kopf-go/kopf/pkg/metrics"
)

// taker takes objects from a queue, as a worker does.
type taker struct {
	t     *testing.T
	taken chan string
}

// taking returns a worker that records the names of the objects, and returns none of them.
func taking(t *testing.T, q *Queue) taker {
	w := taker{t, make(chan string, 100)}
	go func() {
		for {
			key, shutdown := q.Get()
			if shutdown {
				return
			}
			w.taken <- key.Name
		}
	}()
	return w
}

// expect expects that exactly these objects are handed out within a time.
func (w taker) expect(within time.Duration, names ...string) {
	w.t.Helper()
	time.Sleep(within)
	synctest.Wait()
	for _, name := range names {
		select {
		case got := <-w.taken:
			if got != name {
				w.t.Errorf("got %s, want %s", got, name)
			}
		default:
			w.t.Errorf("%s was not handed out", name)
		}
	}
	select {
	case got := <-w.taken:
		w.t.Errorf("%s was handed out", got)
	default:
	}
}

func TestDetachedObjectStaysLocked(t *testing.T) {
	ends := map[string]func(q *Queue){
		"the worker returns it first": func(q *Queue) { q.Done(keyOf("a")); q.Release(keyOf("a"), 0) },
		"the worker returns it last":  func(q *Queue) { q.Release(keyOf("a"), 0); q.Done(keyOf("a")) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				w := taking(t, q)
				q.Add(keyOf("a"))
				w.expect(0, "a")
				q.Detach(keyOf("a"))
				q.Add(keyOf("a"))
				w.expect(time.Hour)
				end(q)
				w.expect(0, "a")
				if got := q.State(); got != (metrics.Queue{Busy: 1}) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// One of both has not returned the object yet.
func TestObjectIsLockedUntilBothHaveReturnedIt(t *testing.T) {
	ends := map[string]func(q *Queue){
		"the worker":    func(q *Queue) { q.Done(keyOf("a")) },
		"the goroutine": func(q *Queue) { q.Release(keyOf("a"), time.Second) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				w := taking(t, q)
				q.Add(keyOf("a"))
				w.expect(0, "a")
				q.Detach(keyOf("a"))
				q.Add(keyOf("a"))
				end(q)
				w.expect(time.Hour)
			})
		})
	}
}

func TestAdditionsOfABusyObjectAreMerged(t *testing.T) {
	lazy := handler.LowPriority
	tests := map[string]struct {
		add      func(q *Queue)
		release  time.Duration
		at       time.Duration // of the next pass; 0 for none
		priority int
	}{
		"nothing was added":           {func(*Queue) {}, 0, 0, 0},
		"a delay of its own":          {func(*Queue) {}, time.Minute, time.Minute, 0},
		"the earliest time counts":    {func(q *Queue) { q.AddAfter(keyOf("a"), time.Hour); q.AddAfter(keyOf("a"), time.Minute) }, 2 * time.Minute, time.Minute, 0},
		"its own delay is the first":  {func(q *Queue) { q.AddAfter(keyOf("a"), time.Hour) }, time.Second, time.Second, 0},
		"the highest priority counts": {func(q *Queue) { q.AddWithOpts(opts(time.Minute, &lazy), keyOf("a")); q.Add(keyOf("a")) }, 0, 1, 0},
		"a low priority is kept":      {func(q *Queue) { q.AddWithOpts(opts(0, &lazy), keyOf("a")) }, 0, 1, lazy},
		"a delay ends it":             {func(q *Queue) { q.AddWithOpts(opts(time.Minute, &lazy), keyOf("a")) }, 0, time.Minute, 0},
		"a rate-limited one waits":    {func(q *Queue) { q.AddRateLimited(keyOf("a")) }, 0, 5 * time.Millisecond, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				q.Add(keyOf("a"))
				q.Get()
				q.Detach(keyOf("a"))
				test.add(q)
				q.Done(keyOf("a"))
				q.Release(keyOf("a"), test.release)
				if test.at == 0 {
					synctest.Wait()
					if got := q.since; len(got) > 0 {
						t.Errorf("%v waits", got)
					}
					return
				}
				began := time.Now()
				if _, priority, _ := q.GetWithPriority(); priority != test.priority || time.Since(began) > test.at || time.Since(began) < test.at-1 {
					t.Errorf("got the priority %d after %v", priority, time.Since(began))
				}
			})
		})
	}
}

func opts(after time.Duration, priority *int) priorityqueue.AddOpts {
	return priorityqueue.AddOpts{After: after, Priority: priority}
}

// The queue of controller-runtime would look at every locked object whenever a worker asks.
func TestLockedObjectsAreNotInTheQueueBelow(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		q.Add(keyOf("a"))
		q.Get()
		q.Add(keyOf("a"))
		synctest.Wait()
		if got := q.PriorityQueue.Len(); got != 0 {
			t.Errorf("%d objects", got)
		}
	})
}

func TestReleaseAfterTheShutdownAddsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.Add(keyOf("a"))
		q.Get()
		q.Detach(keyOf("a"))
		q.Add(keyOf("a"))
		q.Done(keyOf("a"))
		q.ShutDown()
		q.Release(keyOf("a"), time.Second)
		time.Sleep(time.Minute)
		if _, shutdown := q.Get(); !shutdown || q.PriorityQueue.Len() != 0 {
			t.Error("the object is in the queue")
		}
	})
}

func TestDetachedObjectsHaveNoWorker(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		q.Add(keyOf("a"))
		q.Get()
		q.Detach(keyOf("a"))
		expectQueue(t, q, metrics.Queue{Busy: 1})
		q.Done(keyOf("a"))
		expectQueue(t, q, metrics.Queue{})
		q.Add(keyOf("a"))
		time.Sleep(time.Hour)
		expectQueue(t, q, metrics.Queue{})
		q.Release(keyOf("a"), 0)
		time.Sleep(time.Second)
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second})
	})
}
