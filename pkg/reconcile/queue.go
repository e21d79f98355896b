package reconcile

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// queue is the queue of controller-runtime, which knows besides for how long the
// objects in it have been waiting. Objects that are not in it cost nothing.
type queue struct {
	priorityqueue.PriorityQueue[object.Key]

	mu sync.Mutex
	// since is from when on each object in the queue waits for a worker; it can be in
	// the future. most is how many there were, for maps do not shrink.
	since map[object.Key]time.Time
	most  int
	// busy are those that are being handled. If they are in the queue as well, they
	// wait for themselves, and not for a worker.
	busy map[object.Key]struct{}
}

var _ priorityqueue.PriorityQueue[object.Key] = (*queue)(nil)

// newQueue makes a queue as controllers have it by default.
func (e *Engine) newQueue(name string, limiter workqueue.TypedRateLimiter[object.Key]) workqueue.TypedRateLimitingInterface[object.Key] {
	return &queue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[object.Key]) {
			o.Log, o.RateLimiter = e.Logger.V(2), limiter
		}),
		since: map[object.Key]time.Time{}, busy: map[object.Key]struct{}{},
	}
}

// AddWithOpts adds objects.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, keys ...object.Key) {
	q.expect(time.Now().Add(options.After), keys)
	q.PriorityQueue.AddWithOpts(options, keys...)
}

// Add adds an object.
func (q *queue) Add(key object.Key) { q.AddWithOpts(priorityqueue.AddOpts{}, key) }

// AddAfter adds an object that is to wait before.
func (q *queue) AddAfter(key object.Key, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds an object as controllers do after an error.
func (q *queue) AddRateLimited(key object.Key) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// Get waits for an object that can be handled.
func (q *queue) Get() (key object.Key, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// GetWithPriority is Get, with the priority of the object.
func (q *queue) GetWithPriority() (key object.Key, priority int, shutdown bool) {
	key, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if key.Resource != "" {
		q.taken(key)
	}
	return key, priority, shutdown
}

// Done says that an object is not handled any longer. If it was added meanwhile, it
// begins to wait for a worker.
func (q *queue) Done(key object.Key) {
	q.mu.Lock()
	delete(q.busy, key)
	if now := time.Now(); q.since[key].Before(now) && !q.since[key].IsZero() {
		q.since[key] = now
	}
	q.mu.Unlock()
	q.PriorityQueue.Done(key)
}

func (q *queue) expect(from time.Time, keys []object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if known, waits := q.since[key]; !waits || from.Before(known) {
			q.since[key] = from
		}
	}
	q.most = max(q.most, len(q.since))
}

func (q *queue) taken(key object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.since, key)
	q.busy[key] = struct{}{}
	if q.most > 64 && len(q.since) < q.most/8 {
		q.since, q.most = maps.Collect(maps.All(q.since)), len(q.since)
	}
}

// state looks through the queue. Nil has nothing in it.
func (q *queue) state() (state metrics.Queue) {
	if q == nil {
		return state
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	state.Busy = len(q.busy)
	for key, since := range q.since {
		if _, busy := q.busy[key]; busy || since.After(now) {
			continue
		}
		state.Depth++
		state.Oldest = max(state.Oldest, now.Sub(since))
	}
	return state
}
