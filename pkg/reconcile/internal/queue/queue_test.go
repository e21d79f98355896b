package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// inQueue runs a test with a queue, in virtual time.
func inQueue(t *testing.T, test func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		defer q.ShutDown()
		test(t, q)
	})
}

func newQueue() *Queue {
	return New("", workqueue.DefaultTypedControllerRateLimiter[object.Key](), logr.Discard())
}

func expectQueue(t *testing.T, q *Queue, want metrics.Queue) {
	t.Helper()
	synctest.Wait()
	if got := q.State(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestQueueKnowsHowLongTheOldestObjectWaits(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		q.Add(keyOf("a"))
		<-time.After(time.Second)
		q.Add(keyOf("a")) // keeps its age
		q.Add(keyOf("b"))
		<-time.After(time.Second)
		expectQueue(t, q, metrics.Queue{Depth: 2, Oldest: 2 * time.Second})
		key, _ := q.Get()
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second, Busy: 1})
		q.Done(key)
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second})
	})
}

func TestDelayedObjectDoesNotWaitYet(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		q.AddAfter(keyOf("a"), time.Minute)
		<-time.After(time.Second)
		expectQueue(t, q, metrics.Queue{})
		<-time.After(time.Minute)
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second})
		q.AddAfter(keyOf("b"), time.Hour)
		q.Add(keyOf("b")) // earlier than that
		<-time.After(time.Second)
		expectQueue(t, q, metrics.Queue{Depth: 2, Oldest: 2 * time.Second})
	})
}

func TestBusyObjectDoesNotWaitForAWorker(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		q.Add(keyOf("a"))
		key, _ := q.Get()
		q.Add(keyOf("a"))
		<-time.After(time.Hour)
		expectQueue(t, q, metrics.Queue{Busy: 1})
		q.Done(key)
		<-time.After(time.Second)
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second})
	})
}

func TestEmptyQueueFreesItsMemory(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		const many = 10_000
		for i := range many {
			q.Add(keyOf(fmt.Sprint(i)))
		}
		for range many {
			key, _ := q.Get()
			q.Done(key)
		}
		expectQueue(t, q, metrics.Queue{})
		if q.most > 64 {
			t.Errorf("capacity for %d", q.most)
		}
	})
}

func TestNilQueueIsEmpty(t *testing.T) {
	var q *Queue
	if got := q.State(); got != (metrics.Queue{}) {
		t.Errorf("got %+v", got)
	}
	if since := q.Listed(keyOf("a")); !since.IsZero() {
		t.Errorf("an object is listed since %v", since)
	}
}
