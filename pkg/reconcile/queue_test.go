package reconcile

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

// inQueue runs a test with a queue, in which time passes only when everybody waits.
func inQueue(t *testing.T, test func(t *testing.T, q *queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Logger: logr.Discard()})
		q := e.newQueue("", workqueue.DefaultTypedControllerRateLimiter[object.Key]()).(*queue)
		defer q.ShutDown()
		test(t, q)
	})
}

func expectQueue(t *testing.T, q *queue, want metrics.Queue) {
	t.Helper()
	synctest.Wait()
	if got := q.state(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheQueueKnowsHowLongTheFirstOneWaits(t *testing.T) {
	inQueue(t, func(t *testing.T, q *queue) {
		q.Add(keyOf("a"))
		<-time.After(time.Second)
		q.Add(keyOf("a")) // it is not younger for that
		q.Add(keyOf("b"))
		<-time.After(time.Second)
		expectQueue(t, q, metrics.Queue{Depth: 2, Oldest: 2 * time.Second})
		key, _ := q.Get()
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second, Busy: 1})
		q.Done(key)
		expectQueue(t, q, metrics.Queue{Depth: 1, Oldest: time.Second})
	})
}

func TestWhatIsToComeLaterDoesNotWaitYet(t *testing.T) {
	inQueue(t, func(t *testing.T, q *queue) {
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

func TestWhatIsBeingHandledDoesNotWaitForAWorker(t *testing.T) {
	inQueue(t, func(t *testing.T, q *queue) {
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

func TestAnEmptyQueueKeepsNoRoomForWhatWasInIt(t *testing.T) {
	inQueue(t, func(t *testing.T, q *queue) {
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
			t.Errorf("there is room for %d", q.most)
		}
	})
}

func TestNobodyWorksOnAQueueThatIsNotThere(t *testing.T) {
	if got := New(Config{}).State().Queue; got.Depth != 0 || got.Workers == 0 {
		t.Errorf("got %+v", got)
	}
}
