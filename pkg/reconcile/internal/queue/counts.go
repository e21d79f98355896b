package queue

import (
	"time"

	"github.com/kopf-go/kopf/pkg/metrics"
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
