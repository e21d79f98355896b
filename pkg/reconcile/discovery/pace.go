package discovery

import "time"

// Shortest is the shortest pause between two looks at a cluster: what installs
// resources installs many, and the API server takes a moment to offer them.
const Shortest = 500 * time.Millisecond

// Pace tells when to look at a cluster: soon after something has happened, then
// less and less often, as its API servers learn of it at different times; then
// not at all if everything was found, or else at the longest pause.
// It is for one goroutine.
type Pace struct {
	// Longest is the longest pause.
	Longest time.Duration
	// Blind: nothing tells when something happens.
	Blind bool

	pause time.Duration
	next  time.Time
}

// Hurry is for when something has happened.
func (p *Pace) Hurry() {
	p.pause = min(Shortest, p.Longest)
	if at := time.Now().Add(p.pause); p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// Looked is for when somebody has looked; settled, if there is nothing to look for.
func (p *Pace) Looked(settled bool) {
	p.pause = min(max(2*p.pause, Shortest), p.Longest)
	p.next = time.Now().Add(p.pause)
	if settled && !p.Blind && p.pause == p.Longest {
		p.next = time.Time{}
	}
}

// Rest makes the first look the last one, if it has found everything.
func (p *Pace) Rest(settled bool) {
	if settled {
		p.pause = p.Longest / 2
	}
	p.Looked(settled)
}

// Next is how long to wait; false, if there is nothing to wait for.
func (p *Pace) Next() (time.Duration, bool) { return max(0, time.Until(p.next)), !p.next.IsZero() }
