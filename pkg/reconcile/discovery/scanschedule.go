package discovery

import "time"

// MinInterval is the shortest pause between two looks at a cluster: what installs
// resources installs many, and the API server takes a moment to offer them.
const MinInterval = 500 * time.Millisecond

// ScanSchedule tells when to look at a cluster: soon after something has happened, then
// less and less often, as its API servers learn of it at different times; then
// not at all if everything was found, or else at the longest pause.
// It is for one goroutine.
type ScanSchedule struct {
	// MaxInterval is the longest pause.
	MaxInterval time.Duration
	// Polling: nothing tells when something happens.
	Polling bool

	interval time.Duration
	next     time.Time
}

// ScanSoon is for when something has happened.
func (p *ScanSchedule) ScanSoon() {
	p.interval = min(MinInterval, p.MaxInterval)
	if at := time.Now().Add(p.interval); p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// Scanned is for when somebody has looked; settled, if there is nothing to look for.
func (p *ScanSchedule) Scanned(settled bool) {
	p.interval = min(max(2*p.interval, MinInterval), p.MaxInterval)
	p.next = time.Now().Add(p.interval)
	if settled && !p.Polling && p.interval == p.MaxInterval {
		p.next = time.Time{}
	}
}

// FirstScanned makes the first look the last one, if it has found everything.
func (p *ScanSchedule) FirstScanned(settled bool) {
	if settled {
		p.interval = p.MaxInterval / 2
	}
	p.Scanned(settled)
}

// Next is how long to wait; false, if there is nothing to wait for.
func (p *ScanSchedule) Next() (time.Duration, bool) {
	return max(0, time.Until(p.next)), !p.next.IsZero()
}
