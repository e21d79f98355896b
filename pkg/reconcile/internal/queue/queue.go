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

// Queue is the priority queue of controller-runtime, which also knows for how long the
// objects in it have been waiting. Objects that are not in it cost nothing.
type Queue struct {
	priorityqueue.PriorityQueue[object.Key]

	mu sync.Mutex
	// since is from when on each object in the queue waits for a worker; it can be in
	// the future. most is how many there were, because maps do not shrink.
	since map[object.Key]time.Time
	most  int
	// busy are those that are being handled. If they are in the queue as well, they
	// wait for themselves, and not for a worker.
	busy map[object.Key]struct{}
}

var _ priorityqueue.PriorityQueue[object.Key] = (*Queue)(nil)

// New makes a queue as controllers have it by default.
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

// AddAfter adds an object that must wait before.
func (q *Queue) AddAfter(key object.Key, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds an object as controllers do after an error.
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

// Done says that an object is not being handled anymore. If it was added meanwhile, it
// begins to wait for a worker.
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

// State looks through the queue. A nil queue is empty.
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
