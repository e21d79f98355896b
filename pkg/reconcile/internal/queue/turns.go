package queue

import (
	"math"

	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// turns lets resources take turns, so that thousands of objects of one resource do not delay
// the others: each object gets the turn after that of the resource's previous one, but no turn
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

// again returns the turn of an object that has one already, or must wait for something else
// first.
func (t *turns) again(resource string) (turn int) { return max(t.now, t.last[resource]) }

// take notes that an object was taken.
func (t *turns) take(turn int) { t.now = max(t.now, turn) }

// initialPriority is the priority of initial objects before their turn is subtracted. It is
// lower than that of all others.
const initialPriority = math.MinInt / 2

// priorityOf returns the priority of an object in the queue of controller-runtime, which has
// no turns. The lock is held.
func (q *Queue) priorityOf(key object.Key, isInitial, joins bool) int {
	t, lowest := &q.live, 0
	if isInitial {
		t, lowest = &q.listed, initialPriority
	}
	if joins {
		return lowest - t.join(key.Resource)
	}
	return lowest - t.again(key.Resource)
}

// noteTurn notes that an object was taken, and returns its priority for the controller. The
// lock is held.
func (q *Queue) noteTurn(priority int) int {
	if priority <= initialPriority {
		q.listed.take(initialPriority - priority)
		return handler.LowPriority
	}
	q.live.take(-priority)
	return 0
}
