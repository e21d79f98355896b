package window

import "time"

// What is late. The answers to writes through an admission webhook take long always, and etcd on a slow
// disk makes all writes slow. So there is no absolute limit: the time of an answer is compared with that
// of the same verb and resource when few requests are in flight.
const (
	// An answer is late if it takes tolerance times as long as usual, and slack besides. On a machine
	// that does nothing else, the time doubles when requests of the operator begin to wait for each
	// other. Differences below the slack are those of schedulers and garbage collectors.
	slack = time.Millisecond
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
	return took > p.calm*3/2+slack
}
