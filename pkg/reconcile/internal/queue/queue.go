package queue

import (
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Queue is the priority queue of controller-runtime. It also lets resources take turns, tracks
// how long its objects have been waiting, and lets an object be handled apart from the workers
// (Detach). Objects outside the queue cost nothing.
type Queue struct {
	priorityqueue.PriorityQueue[object.Key]
	limiter workqueue.TypedRateLimiter[object.Key]

	mu sync.Mutex
	// since contains the time from which each object waits for a worker, possibly in the
	// future. most is their maximum number, because maps do not shrink.
	since map[object.Key]time.Time
	most  int
	// busy contains the objects that are being handled.
	busy map[object.Key]*handling
	// workers is the number of objects in busy that a worker has.
	workers int
	initial initial
	// live and listed are the turns of changed and of initial objects.
	live, listed turns
}

var _ priorityqueue.PriorityQueue[object.Key] = (*Queue)(nil)

// New returns a queue with the defaults of controllers.
func New(name string, limiter workqueue.TypedRateLimiter[object.Key], logger logr.Logger) *Queue {
	return &Queue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[object.Key]) {
			o.Log = logger
			o.RateLimiter = limiter
		}),
		limiter: limiter, since: map[object.Key]time.Time{}, busy: map[object.Key]*handling{},
	}
}

// AddWithOpts adds objects. An object that is being handled is added when that ends.
func (q *Queue) AddWithOpts(options priorityqueue.AddOpts, keys ...object.Key) {
	for _, p := range q.recordAdded(options, keys) {
		options.Priority = &p.priority
		q.PriorityQueue.AddWithOpts(options, p.key)
	}
}

// place is the place of an object in the queue of controller-runtime.
type place struct {
	key      object.Key
	priority int
}

// Add adds an object.
func (q *Queue) Add(key object.Key) { q.AddWithOpts(priorityqueue.AddOpts{}, key) }

// AddAfter adds an object that must wait first.
func (q *Queue) AddAfter(key object.Key, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds an object after an error, as controllers do.
func (q *Queue) AddRateLimited(key object.Key) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// Get waits for an object that can be handled.
func (q *Queue) Get() (key object.Key, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// GetWithPriority is Get, with the priority of the object. An object that had to wait for
// something else gets its turn now.
func (q *Queue) GetWithPriority() (key object.Key, priority int, shutdown bool) {
	for {
		key, priority, shutdown = q.PriorityQueue.GetWithPriority()
		if key.Resource == "" {
			return key, priority, shutdown
		}
		if priority != delayedPriority {
			priority = q.recordTaken(key, priority)
			q.refill()
			return key, priority, shutdown
		}
		q.join(key)
		q.PriorityQueue.Done(key)
	}
}

// recordAdded keeps the additions of objects that are being handled, and returns the places of
// the others.
func (q *Queue) recordAdded(options priorityqueue.AddOpts, keys []object.Key) (idle []place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := time.Now().Add(options.After)
	isInitial := options.Priority != nil && *options.Priority < 0
	isDelayed := options.After > 0 || options.RateLimited
	for _, key := range keys {
		if h := q.busy[key]; h != nil {
			h.keep(q.additionOf(options, key))
			continue
		}
		known, waits := q.since[key]
		if !waits || from.Before(known) {
			q.since[key] = from
		}
		idle = append(idle, place{key, q.priorityOf(key, isInitial, isDelayed, waits)})
	}
	q.most = max(q.most, len(q.since))
	return idle
}

// recordTaken records that a worker has taken an object, and returns its priority for the controller.
func (q *Queue) recordTaken(key object.Key, priority int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.since, key)
	q.initial.remove(key)
	q.busy[key] = &handling{worker: true}
	q.workers++
	if q.most > 64 && len(q.since) < q.most/8 {
		q.since = maps.Collect(maps.All(q.since))
		q.most = len(q.since)
	}
	if priority <= initialPriority {
		q.listed.take(initialPriority - priority)
		return handler.LowPriority
	}
	q.live.take(-priority)
	return 0
}

// State returns the state of the queue. A nil queue is empty.
func (q *Queue) State() (state metrics.Queue) {
	if q == nil {
		return state
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	state.Busy = q.workers
	for _, since := range q.since {
		if since.After(now) {
			continue
		}
		state.Depth++
		state.Oldest = max(state.Oldest, now.Sub(since))
	}
	for _, l := range q.initial.lists {
		state.Depth += len(l.keys)
		state.Oldest = max(state.Oldest, now.Sub(l.since))
	}
	return state
}
