package window

import "time"

// Writes through an admission webhook always take long, and etcd on a slow disk makes all writes slow.
// So no absolute limit says which answers are late: the time of an answer is compared with that of the
// same verb and resource when few requests are in flight.
const (
	// An answer is late if it takes tolerance hundredths of the time with few requests, and slack
	// besides. Beyond that, requests of the operator mostly wait for each other, and those of others
	// wait, too, while the server does not answer more of them in a second. Differences below the slack
	// are those of schedulers and garbage collectors.
	tolerance = 150
	slack     = time.Millisecond
	// Each answer counts for an eighth of an average, as for the round trips of TCP.
	weight = 8
)

// pace is how long the API server takes for one verb of a resource. The zero value is ready to use.
type pace struct {
	calm time.Duration // the average with few requests in flight
	busy time.Duration // the average since then
}

// isLate reports whether an answer is late, and notes its time. It is never late if the request was
// calm: with few others in flight, from its beginning to its end.
func (p *pace) isLate(took time.Duration, calm bool) bool {
	switch {
	case p.calm == 0:
		p.calm = took
		p.busy = took
		return false
	case calm:
		p.calm += (took - p.calm) / weight
		p.busy = p.calm
		return false
	}
	p.busy += (took - p.busy) / weight
	p.calm = min(p.calm, p.busy) // the server has become faster
	return took > p.calm*tolerance/100+slack
}
