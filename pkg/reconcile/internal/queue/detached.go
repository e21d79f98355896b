package queue

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// handling is the state of an object that is being handled. The queue of controller-runtime
// has it locked, so that it is not handed out again.
type handling struct {
	worker   bool // a worker has not returned it yet
	detached bool // it is handled apart from the workers
	// added says when the object must be handled again; nil if it need not. The queue of
	// controller-runtime would look at every such object whenever a worker is free.
	added *addition
}

// addition is an addition of an object that is being handled.
type addition struct {
	at       time.Time
	priority int
}

// additionOf returns an addition as it is kept. The lock is held.
func (q *Queue) additionOf(options priorityqueue.AddOpts, key object.Key) addition {
	after := options.After
	if options.RateLimited {
		if limited := q.limiter.When(key); after == 0 || limited < after {
			after = limited
		}
	}
	a := addition{at: time.Now().Add(after)}
	if options.Priority != nil {
		a.priority = *options.Priority
	}
	return a
}

// keep merges an addition into the earlier ones, as the queue does: the earliest time and the
// highest priority count.
func (h *handling) keep(a addition) {
	if h.added == nil {
		h.added = &a
		return
	}
	if a.at.Before(h.added.at) {
		h.added.at = a.at
	}
	h.added.priority = max(h.added.priority, a.priority)
}

// Detach lets a worker return an object while it is still being handled: it stays locked
// until Release. Call it while the worker has the object. A nil queue locks nothing.
func (q *Queue) Detach(key object.Key) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy[key].detached = true
}

// Lock locks an object that is handled apart from the workers since before the queue began,
// until Release. Call it before the object is added.
func (q *Queue) Lock(key object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy[key] = &handling{detached: true}
}

// Done returns an object from its worker.
func (q *Queue) Done(key object.Key) {
	q.end(key, func(h *handling) {
		h.worker = false
		q.workers--
	})
}

// Release ends the handling of a detached object. It adds the object again after a delay,
// unless the delay is 0. A queue that was shut down drops that.
func (q *Queue) Release(key object.Key, after time.Duration) {
	if q == nil {
		return
	}
	q.end(key, func(h *handling) {
		h.detached = false
		if after > 0 {
			h.keep(addition{at: time.Now().Add(after)})
		}
	})
}

// end unlocks an object when both the worker and whoever has detached it have returned it.
// Then it adds the object if that was requested meanwhile.
func (q *Queue) end(key object.Key, release func(h *handling)) {
	q.mu.Lock()
	h := q.busy[key]
	release(h)
	if h.worker || h.detached {
		q.mu.Unlock()
		return
	}
	delete(q.busy, key)
	q.mu.Unlock()
	q.PriorityQueue.Done(key)
	if a := h.added; a != nil {
		q.AddWithOpts(priorityqueue.AddOpts{After: max(0, time.Until(a.at)), Priority: &a.priority}, key)
	}
}
