package window

// The rule of the window.
const (
	// Patient is how many requests may always be in flight if the API server is only slow. A client with fewer
	// reads and writes each of them alone, and needs up to a quarter more processor time. It is also the window
	// of a burst after a time with few requests: the first round can exceed what the API server permits; four
	// rounds later, the window can be sixteen times as large. The very first window is Calm, because nothing is
	// known about the server.
	Patient = 8
	// Calm is how few requests show how fast the API server is without the others.
	Calm = 2
	// After so many rounds of late answers, the window closes down to Calm for a round, to learn how fast the API
	// server is now. It opens quickly again.
	probeAfter = 8
	// minRound is the minimum number of answers that the window is judged by, minQuickRound while it
	// opens quickly.
	minRound      = 8
	minQuickRound = 4
	// refusedPatience is how many answers in time one more request takes after a refusal. With the rule of
	// TCP, a window of five would be refused one request in ten. Each step without a refusal halves it.
	refusedPatience = 128
)

// Reason is why the window has closed.
type Reason string

// The reasons, in the order of their severity.
const (
	Refused     Reason = "refused"     // the status 429: the server has too many requests
	Unavailable Reason = "unavailable" // any other answer that asks for a pause with Retry-After
	TimedOut    Reason = "timeout"     // no answer in the time that the client or the server has
	Slow        Reason = "latency"     // most answers took much longer than with few requests in flight
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{Refused, Unavailable, TimedOut, Slow} }

// rule decides how many requests may be in flight. It depends only on what it is told: it has no clock,
// no lock, and makes no requests.
//
// Answers are judged in rounds: as many as the window permits. A window that has closed begins a new
// round. Answers to requests of an earlier one have no effect, because they say how the server was
// before.
type rule struct {
	max  int // the window never opens further
	size int
	// known is the size up to which the window opens quickly. It is the maximum until the window has
	// closed for the first time.
	known int

	// Of the current round.
	round         int
	answers, late int
	peak          int  // the maximum number of requests in flight
	wanted        bool // requests have waited

	slow     int // rounds of late answers
	inTime   int // answers since the window has opened, if they count
	patience int // the minimum of inTime until the window opens by one
}

func newRule(limit int) rule {
	return rule{max: limit, size: min(Calm, limit), known: limit}
}

// limit changes the maximum.
func (r *rule) limit(limit int) {
	if r.known == r.max {
		r.known = limit
	}
	r.max = limit
	r.size = min(r.size, limit)
	r.known = min(r.known, limit)
}

// sent notes a request, and returns its round.
func (r *rule) sent(inFlight int) (round int) {
	r.peak = max(r.peak, inFlight)
	return r.round
}

// isCareful reports whether the window has closed because of a failure, and has not yet opened by
// some steps since then.
func (r *rule) isCareful() bool { return r.patience > 0 }

// answered notes an answer to a request of the round. It returns Slow if the window has closed.
func (r *rule) answered(round int, late, waiting bool) Reason {
	if round != r.round {
		return ""
	}
	r.answers++
	if late {
		r.late++
	}
	r.wanted = r.wanted || waiting
	least := minRound
	if r.size < r.known {
		least = minQuickRound
	}
	if r.answers < max(r.size, least) {
		return ""
	}
	isSlow := 2*r.late > r.answers
	r.inTime += r.answers - r.late
	switch {
	case isSlow && r.peak > Calm:
		return r.slowed()
	case isSlow:
	case r.wanted:
		r.open()
	default:
		r.shrink()
	}
	r.begin()
	return ""
}

// slowed ends a round of late answers. It returns Slow if the window has closed.
func (r *rule) slowed() (why Reason) {
	switch {
	case r.size > Patient:
		r.close(max(Patient, min(r.size, r.peak)*4/5))
		why = Slow
	case r.size < r.known:
		r.size = min(2*r.size, r.known, Patient)
	}
	r.slow++
	if r.slow%probeAfter == 0 {
		r.size = min(r.size, Calm)
		r.round++
	}
	r.begin()
	return why
}

// open opens the window after a round in which it was too small.
func (r *rule) open() {
	switch {
	case r.size < r.known:
		r.size = min(2*r.size, r.known)
	case r.inTime < r.patience:
		return
	case r.size < r.max:
		r.size++
		r.known = r.size
		r.patience /= 2
	}
	r.inTime = 0
}

// shrink makes a window smaller that is not used, so that the next burst begins with a small one. It
// opens quickly again.
func (r *rule) shrink() {
	r.size = min(r.size, max(2*r.peak, Patient))
}

// failed notes a failure of a request of the round. It returns the reason if the window has closed.
func (r *rule) failed(round int, why Reason) Reason {
	if round != r.round {
		return ""
	}
	r.patience = refusedPatience
	r.close(max(1, r.size/2))
	return why
}

// close sets a smaller size.
func (r *rule) close(size int) {
	r.size = size
	r.known = size
	r.inTime = 0
	r.round++
	r.begin()
}

// begin begins to count anew.
func (r *rule) begin() {
	r.answers = 0
	r.late = 0
	r.peak = 0
	r.wanted = false
}
