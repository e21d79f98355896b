package queue

import (
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// Objects counts the objects that the queue knows, by resource. A nil queue is empty.
func (q *Queue) Objects() map[string]metrics.Objects {
	counts := map[string]metrics.Objects{}
	if q == nil {
		return counts
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.busy {
		c := counts[key.Resource]
		c.Handling++
		counts[key.Resource] = c
	}
	for key, since := range q.since {
		c := counts[key.Resource]
		if since.After(now) {
			c.Delayed++
		} else {
			c.Queued++
		}
		counts[key.Resource] = c
	}
	for resource, l := range q.initial.lists {
		c := counts[resource]
		c.Queued += len(l.keys)
		counts[resource] = c
	}
	return counts
}

// Of returns whether an object is being handled, and from when on it waits for a worker: zero if it
// does not wait. Listed objects that are not in the queue of controller-runtime do not wait yet; see Listed. A nil queue is
// empty.
func (q *Queue) Of(key object.Key) (busy bool, from time.Time) {
	if q == nil {
		return false, time.Time{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy[key] != nil, q.since[key]
}

// Listed returns since when an object is among those that were listed and are not in the queue of controller-runtime yet:
// zero if it is not. It looks at all of them. A nil queue is empty.
func (q *Queue) Listed(key object.Key) (since time.Time) {
	if q == nil {
		return time.Time{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.initial.lists[key.Resource]; l != nil && slices.Contains(l.keys, key) {
		since = l.since
	}
	return since
}
