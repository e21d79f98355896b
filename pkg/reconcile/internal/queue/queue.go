package queue

import (
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Queue is the priority queue of controller-runtime. It also tracks how long its objects have
// been waiting. Objects outside the queue cost nothing.
type Queue struct {
	priorityqueue.PriorityQueue[object.Key]

	mu sync.Mutex
	// since contains the time from which each object waits for a worker, possibly in the
	// future. most is their maximum number, because maps do not shrink.
	since map[object.Key]time.Time
	most  int
	// busy contains the objects that are being handled. If they are also in the queue,
	// they wait for that, not for a worker.
	busy map[object.Key]struct{}
}

var _ priorityqueue.PriorityQueue[object.Key] = (*Queue)(nil)

// New returns a queue with the defaults of controllers.
func New(name string, limiter workqueue.TypedRateLimiter[object.Key], logger logr.Logger) *Queue {
	return &Queue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[object.Key]) {
			o.Log, o.RateLimiter = logger, limiter
		}),
		since: map[object.Key]time.Time{}, busy: map[object.Key]struct{}{},
	}
}

// AddWithOpts adds objects.
func (q *Queue) AddWithOpts(options priorityqueue.AddOpts, keys ...object.Key) {
	q.noteAdded(time.Now().Add(options.After), keys)
	q.PriorityQueue.AddWithOpts(options, keys...)
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

// GetWithPriority is Get, with the priority of the object.
func (q *Queue) GetWithPriority() (key object.Key, priority int, shutdown bool) {
	key, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if key.Resource != "" {
		q.noteTaken(key)
	}
	return key, priority, shutdown
}

// Done marks an object as no longer being handled. If it was added meanwhile, it now waits
// for a worker.
func (q *Queue) Done(key object.Key) {
	q.mu.Lock()
	delete(q.busy, key)
	if now := time.Now(); q.since[key].Before(now) && !q.since[key].IsZero() {
		q.since[key] = now
	}
	q.mu.Unlock()
	q.PriorityQueue.Done(key)
}

func (q *Queue) noteAdded(from time.Time, keys []object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if known, waits := q.since[key]; !waits || from.Before(known) {
			q.since[key] = from
		}
	}
	q.most = max(q.most, len(q.since))
}

func (q *Queue) noteTaken(key object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.since, key)
	q.busy[key] = struct{}{}
	if q.most > 64 && len(q.since) < q.most/8 {
		q.since, q.most = maps.Collect(maps.All(q.since)), len(q.since)
	}
}

// State returns the state of the queue. A nil queue is empty.
func (q *Queue) State() (state metrics.Queue) {
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
