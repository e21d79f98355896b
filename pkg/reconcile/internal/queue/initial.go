package queue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// Objects that were listed wait while there are others, which have just changed, but not for
// longer than initialWait: at every tick, some of them become as urgent as the others. So a
// list of thousands of objects neither delays a change nor is delayed for ever.
const (
	initialWait = 55 * time.Second
	initialTick = 250 * time.Millisecond
)

// initial contains the objects that were listed, in their order.
type initial struct {
	keys []object.Key
	// most is the maximum number of keys since there were none.
	most int
}

// AddInitial adds objects that were listed, and are not known to have changed.
func (q *Queue) AddInitial(keys ...object.Key) {
	priority := handler.LowPriority
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	q.mu.Lock()
	defer q.mu.Unlock()
	starts := len(q.initial.keys) == 0
	q.initial.keys = append(q.initial.keys, keys...)
	q.initial.most = max(q.initial.most, len(q.initial.keys))
	if starts && len(keys) > 0 {
		time.AfterFunc(initialTick, q.promoteSome)
	}
}

// promoteSome makes the initial objects urgent whose turn it is.
func (q *Queue) promoteSome() {
	if q.ShuttingDown() {
		return
	}
	q.join(q.nextInitial()...)
}

// nextInitial removes the keys that become urgent now. It skips those that are no longer in
// the queue.
func (q *Queue) nextInitial() (keys []object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	const ticks = int(initialWait / initialTick)
	number := (q.initial.most + ticks - 1) / ticks
	for len(keys) < number && len(q.initial.keys) > 0 {
		key := q.initial.keys[0]
		q.initial.keys = q.initial.keys[1:]
		if _, waits := q.since[key]; waits {
			keys = append(keys, key)
		}
	}
	if len(q.initial.keys) == 0 {
		q.initial = initial{}
		return keys
	}
	time.AfterFunc(initialTick, q.promoteSome)
	return keys
}
