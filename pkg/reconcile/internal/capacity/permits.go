package capacity

import (
	"slices"
	"sync"
)

// Permits limit how many passes do the work of the framework at the same time: detection
// and writes. Resources take turns. Passes that finish go before those that begin, because
// others wait for their outcomes; but one in beginShare begins: it occupies a worker until
// then, and without workers no other resource would get its turn. It is safe for concurrent
// use.
type Permits struct {
	mu      sync.Mutex
	free    int
	waiting int
	// lines are the resources with waiting passes; the first one has the next turn.
	lines []*line
}

// line contains the waiting passes of one resource, in the order of their arrival.
type line struct {
	resource             string
	finishing, beginning []chan struct{}
	// finished is the number of permits since a pass could begin.
	finished int
}

// beginShare is the number of permits of a resource of which one goes to a pass that begins.
const beginShare = 5

// NewPermits returns this many permits.
func NewPermits(number int) *Permits { return &Permits{free: number} }

// Begin waits for the permit of a pass that begins.
func (p *Permits) Begin(resource string) {
	p.acquire(resource, func(l *line, ready chan struct{}) { l.beginning = append(l.beginning, ready) })
}

// Continue waits for the permit of a pass that has called a handler. It is limited by the
// work that others do with their permits, so it needs no context.
func (p *Permits) Continue(resource string) {
	p.acquire(resource, func(l *line, ready chan struct{}) { l.finishing = append(l.finishing, ready) })
}

func (p *Permits) acquire(resource string, join func(l *line, ready chan struct{})) {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	join(p.lineOf(resource), ready)
	p.waiting++
	p.mu.Unlock()
	<-ready
}

func (p *Permits) lineOf(resource string) *line {
	i := slices.IndexFunc(p.lines, func(l *line) bool { return l.resource == resource })
	if i < 0 {
		i = len(p.lines)
		p.lines = append(p.lines, &line{resource: resource})
	}
	return p.lines[i]
}

// Release returns a permit, which is handed to the next waiting pass.
func (p *Permits) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) == 0 {
		p.free++
		return
	}
	l := p.lines[0]
	p.waiting--
	close(l.pop())
	p.lines = append(p.lines[:0], p.lines[1:]...)
	if len(l.finishing)+len(l.beginning) > 0 {
		p.lines = append(p.lines, l)
	}
}

// pop removes the pass that goes next.
func (l *line) pop() (next chan struct{}) {
	from := &l.finishing
	l.finished++
	if len(*from) == 0 || l.finished >= beginShare && len(l.beginning) > 0 {
		from = &l.beginning
		l.finished = 0
	}
	next, *from = (*from)[0], (*from)[1:]
	return next
}

// Waiting returns the number of passes that wait.
func (p *Permits) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
