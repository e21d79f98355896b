package queue

import (
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
	return counts
}

// Of returns whether an object is being handled, and from when on it waits for a worker: zero if it
// does not wait. A nil queue is empty.
func (q *Queue) Of(key object.Key) (busy bool, from time.Time) {
	if q == nil {
		return false, time.Time{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy[key] != nil, q.since[key]
}
