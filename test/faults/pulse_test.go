package faults

import (
	"sync/atomic"
	"time"
)

// pulse knows how long this process was kept from running lately. What is late on a busy machine is
// no fault of the operator.
type pulse struct {
	longest, at atomic.Int64
}

// beat is how often a pulse looks at the clock, and lately how long it remembers.
const (
	beat   = 10 * time.Millisecond
	lately = 10 * time.Second
)

// heart is the pulse of this process.
var heart = newPulse()

func newPulse() *pulse {
	p := &pulse{}
	go func() {
		last := time.Now()
		for range time.Tick(beat) {
			now := time.Now()
			if paused := now.Sub(last); int64(paused) >= p.longest.Load() || now.UnixNano()-p.at.Load() > int64(lately) {
				p.longest.Store(int64(paused))
				p.at.Store(now.UnixNano())
			}
			last = now
		}
	}()
	return p
}

// pause returns the longest time without a beat lately.
func (p *pulse) pause() time.Duration { return time.Duration(p.longest.Load()) }
