package discovery

import "time"

// MinInterval is the shortest interval between two scans: installers add many
// resources at once, and the API server needs a moment to offer them.
const MinInterval = 500 * time.Millisecond

// ScanSchedule says when to scan the cluster: soon after a change; then at growing
// intervals, because the API servers of a cluster learn of changes at different times;
// then not at all if everything was found, or else at the longest interval. It is not
// safe for concurrent use.
type ScanSchedule struct {
	// MaxInterval is the longest interval between two scans.
	MaxInterval time.Duration
	// Polling is set while nothing reports changes of the cluster. Then the scans
	// never stop.
	Polling bool

	interval time.Duration
	next     time.Time
}

// ScanSoon schedules a scan after a change.
func (s *ScanSchedule) ScanSoon() {
	s.interval = min(MinInterval, s.MaxInterval)
	if at := time.Now().Add(s.interval); s.next.IsZero() || at.Before(s.next) {
		s.next = at
	}
}

// Scanned schedules the scan after the one that was made now. The flag says whether
// that has found everything.
func (s *ScanSchedule) Scanned(complete bool) {
	s.interval = min(max(2*s.interval, MinInterval), s.MaxInterval)
	s.next = time.Now().Add(s.interval)
	if complete && !s.Polling && s.interval == s.MaxInterval {
		s.next = time.Time{}
	}
}

// FirstScanned is Scanned for the first scan, which is the last one if it has found
// everything.
func (s *ScanSchedule) FirstScanned(complete bool) {
	if complete {
		s.interval = s.MaxInterval / 2
	}
	s.Scanned(complete)
}

// Next returns the time until the next scan. It reports false if none is scheduled.
func (s *ScanSchedule) Next() (time.Duration, bool) {
	return max(0, time.Until(s.next)), !s.next.IsZero()
}
