package queue

import (
	"math"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// turns lets resources take turns, so that thousands of objects of one resource do not delay
// the others. Each object gets the turn after that of the resource's previous one, but no turn
// that is over.
type turns struct {
	now  int            // the turn of the object that was taken last
	last map[string]int // the turn of the object that was added last, by resource
}

// join returns the turn of an object.
func (t *turns) join(resource string) (turn int) {
	if t.last == nil {
		t.last = map[string]int{}
	}
	t.last[resource] = max(t.now, t.last[resource]) + 1
	return t.last[resource]
}

// again returns the turn of an object that has one already.
func (t *turns) again(resource string) (turn int) { return max(t.now, t.last[resource]) }

// take records that an object was taken.
func (t *turns) take(turn int) { t.now = max(t.now, turn) }

const (
	// initialPriority is the priority of initial objects before their turn is subtracted. It
	// is lower than that of all others.
	initialPriority = math.MinInt / 2
	// delayedPriority is the priority of objects that must wait for something else first. It is
	// higher than that of all others, so that they join them as soon as they are ready. A turn from
	// the time of the addition would be over by then, and thousands of retries of one resource
	// would delay all others.
	delayedPriority = 1
)

// priorityOf returns the priority of an object in the queue of controller-runtime, which has
// no turns. The lock is held.
func (q *Queue) priorityOf(key object.Key, isInitial, isDelayed, waits bool) int {
	t := &q.live
	lowest := 0
	switch {
	case isDelayed && !waits:
		return delayedPriority
	case isInitial && !isDelayed:
		t = &q.listed
		lowest = initialPriority
	}
	if waits {
		return lowest - t.again(key.Resource)
	}
	return lowest - t.join(key.Resource)
}

// join gives objects, which wait already, a turn among those that have changed.
func (q *Queue) join(keys ...object.Key) {
	for _, key := range keys {
		q.mu.Lock()
		priority := -q.live.join(key.Resource)
		q.mu.Unlock()
		q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, key)
	}
}
