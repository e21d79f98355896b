package queue

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-go/kopf/pkg/metrics"
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
		if q.initial.number() > 0 || q.initial.lists != nil {
			t.Errorf("%v is left", q.initial)
		}
	})
}

// The others wait beside it, where an object takes a tenth of the memory. They count like those in it.
func TestTheQueueBelowHasSomeOfTheListedObjects(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		keys := slices.Concat(keysIn("as", 5*maxListed), keysIn("bs", 2))
		q.AddInitial(slices.Clone(keys)...)
		<-time.After(initialTick / 2)
		if got := q.Len(); got != maxListed+2 {
			t.Errorf("%d are in the queue below", got)
		}
		expectQueue(t, q, metrics.Queue{Depth: len(keys), Oldest: initialTick / 2})
		if got := q.Objects(); got["as"].Queued != 5*maxListed || got["bs"].Queued != 2 {
			t.Errorf("got %v", got)
		}
		for key, want := range map[object.Key]bool{keys[0]: false, keys[5*maxListed-1]: true, keyOf("unknown"): false, keysIn("bs", 3)[2]: false} {
			since := q.Listed(key)
			if since.IsZero() == want || want && time.Since(since) != initialTick/2 {
				t.Errorf("%s: is listed since %v", key, since)
			}
		}
		taken := takeAll(q, len(keys))
		slices.Sort(taken)
		if left := q.Len(); left > 0 || len(slices.Compact(taken)) != len(keys) {
			t.Errorf("%d are left, and %d were taken once", left, len(slices.Compact(taken)))
		}
		expectQueue(t, q, metrics.Queue{})
	})
}

// An object can be handled when it is listed, and still be when its turn comes.
func TestAListedObjectThatIsHandledIsHandledAgain(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		keys := keysIn("as", 2*maxListed)
		last := keys[len(keys)-1]
		q.Add(last)
		_, _ = q.Get()
		q.AddInitial(keys...)
		takeAll(q, len(keys)-1)
		expectQueue(t, q, metrics.Queue{Busy: 1})
		q.Done(last)
		if names := takeAll(q, 1); names[0] != last.Name {
			t.Errorf("got %q", names)
		}
	})
}

// Lists that follow each other within a tick do not become urgent in half of the time.
func TestListsThatFollowEachOtherAreNotMoreUrgent(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		for range 3 {
			q.AddInitial()
			q.AddInitial(keysIn("bs", 1)...)
			takeAll(q, 1)
		}
		q.AddInitial(keysIn("as", 5*maxListed)...)
		time.Sleep(initialWait / 2)
		synctest.Wait()
		if left := q.initial.number(); left < 2*maxListed || left > 3*maxListed {
			t.Errorf("%d of %d are not urgent after half of the time", left, 5*maxListed)
		}
	})
}

// An object is not left behind those that change all the time, even if it is handled when its turn comes.
func TestAListedObjectBecomesUrgent(t *testing.T) {
	for name, isBusy := range map[string]bool{"it waits": false, "it is handled": true} {
		t.Run(name, func(t *testing.T) {
			inQueue(t, func(t *testing.T, q *Queue) {
				listed := keysIn("as", 1)[0]
				if isBusy {
					q.Add(listed)
					_, _ = q.Get()
				}
				q.AddInitial(listed)
				time.Sleep(2 * initialTick)
				synctest.Wait()
				for _, key := range keysIn("bs", 10) {
					q.Add(key)
				}
				if isBusy {
					q.Done(listed)
				}
				synctest.Wait()
				if names := takeAll(q, 3); !slices.Contains(names, listed.Name) {
					t.Errorf("others are taken first: %v", names)
				}
			})
		})
	}
}

func TestAListedObjectThatIsHandledApartIsNotHandedOut(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		w := taking(t, q)
		q.Lock(keyOf("a"))
		q.AddInitial(keyOf("a"))
		w.expect(2 * initialWait)
		q.Release(keyOf("a"), 0)
		w.expect(0, "a")
	})
}

// Objects that become urgent leave their places to the next ones, although nothing is taken.
func TestTheQueueBelowStaysFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.AddInitial(keysIn("as", 5*maxListed)...)
		const ticks, urgent = 4, 23 // per tick: 5,000 objects in 220 ticks
		time.Sleep(ticks*initialTick + 1)
		synctest.Wait()
		if got := q.Len(); got != maxListed+ticks*urgent {
			t.Errorf("%d are in the queue below", got)
		}
		q.ShutDown()
		time.Sleep(initialWait)
		if left := q.initial.number(); left != 5*maxListed-ticks*urgent {
			t.Errorf("%d are left after the end", left)
		}
	})
}

func TestListsOfAResourceAreAddedUp(t *testing.T) {
	inQueue(t, func(t *testing.T, q *Queue) {
		few := keysIn("as", 2)
		q.AddInitial(few...)
		q.AddInitial(few...)
		takeAll(q, len(few))
		if len(q.initial.lists) > 0 {
			t.Errorf("%v is left of a list that came twice", q.initial)
		}
		keys := keysIn("as", 4*maxListed)
		q.AddInitial(slices.Clone(keys[:2*maxListed])...)
		q.AddInitial(slices.Clone(keys[2*maxListed:])...)
		q.AddInitial(keys[:maxListed]...) // once more, while they wait
		taken := takeAll(q, len(keys))
		slices.Sort(taken)
		if got := len(slices.Compact(taken)); got != len(keys) {
			t.Errorf("%d of %d were taken", got, len(keys))
		}
		for len(q.initial.lists) > 0 && q.Len() > 0 {
			takeAll(q, 1)
		}
		if q.initial.number() > 0 || len(q.initial.lists) > 0 {
			t.Errorf("%v is left", q.initial)
		}
	})
}

func TestAListIsKeptWhileObjectsAreLeft(t *testing.T) {
	i := &initial{}
	i.add(keysIn("as", 2))
	l := i.lists["as"]
	key := l.pop()
	i.queued[key] = struct{}{}
	l.queued++
	i.remove(key)
	if i.number() != 1 || i.lists["as"] != l {
		t.Errorf("got %v", i)
	}
}
