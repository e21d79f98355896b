package queue

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// waits contains the longest times for which objects have waited, by the kinds of their names.
type waits struct {
	mu      sync.Mutex
	added   map[object.Key]time.Time
	longest map[string]time.Duration
	served  map[string]int
}

func (w *waits) add(name string) object.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(name)
	if _, waits := w.added[key]; !waits {
		w.added[key] = time.Now()
	}
	return key
}

func (w *waits) serve(key object.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind, _, _ := strings.Cut(key.Name, "-")
	if since, waited := w.added[key]; waited {
		w.longest[kind] = max(w.longest[kind], time.Since(since))
	}
	w.served[kind]++
	delete(w.added, key)
}

// simulate lists 10,000 objects, while this many others change per second. The workers handle
// 1,000 objects per second. It returns the longest times for which objects have waited.
func simulate(t *testing.T, changes int) (longest map[string]time.Duration) {
	const workers, listed = 10, 10_000
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		w := &waits{added: map[object.Key]time.Time{}, longest: map[string]time.Duration{}, served: map[string]int{}}
		var working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for {
					key, shutdown := q.Get()
					if shutdown {
						return
					}
					w.serve(key)
					time.Sleep(workers * time.Millisecond)
					q.Done(key)
				}
			})
		}
		var keys []object.Key
		for i := range listed {
			keys = append(keys, w.add(fmt.Sprint("listed-", i)))
		}
		q.AddInitial(keys...)
		for i := range changes * 70 {
			q.Add(w.add(fmt.Sprint("changed-", i)))
			time.Sleep(time.Second / time.Duration(changes))
		}
		q.ShutDown()
		working.Wait()
		// An object that becomes urgent while a worker takes it is handled again: at each tick,
		// at most as many as there are workers.
		if w.served["listed"] < listed || w.served["listed"] > listed*105/100 || w.served["changed"] < changes*69 {
			t.Errorf("served %v", w.served)
		}
		longest = w.longest
	})
	return longest
}

func TestListedObjectsAndChangesAreServedInTime(t *testing.T) {
	for name, changes := range map[string]int{"few changes": 5, "changes take 80 % of the capacity": 800} {
		t.Run(name, func(t *testing.T) {
			longest := simulate(t, changes)
			t.Logf("the longest waiting times are %v", longest)
			if longest["changed"] > time.Second || longest["listed"] > time.Minute {
				t.Errorf("the longest waiting times are %v", longest)
			}
		})
	}
}

func TestListedObjectsAreNotHandledTwice(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		w := taking(t, q)
		q.AddInitial(keyOf("a"), keyOf("b"))
		w.expect(0, "a", "b")
		q.Done(keyOf("a"))
		q.Done(keyOf("b"))
		w.expect(2 * initialWait)
		if q.initial.keys != nil {
			t.Errorf("%v is left", q.initial)
		}
	})
}
