package call

import (
	"slices"
	"sync"
	"time"
)

// Permits limit how many passes do the work of the framework at the same time: detection
// and writes. Resources take turns. Passes that finish go before those that begin, because
// others wait for their outcomes; but one in beginShare begins: it occupies a worker until
// then, and without workers no other resource would get its turn.
//
// Passes call filters and storages of users with their permits. If all permits are in use, and none was
// returned for a while, that code may never return. Then a pass that finishes gets one more.
//
// It is safe for concurrent use.
type Permits struct {
	mu      sync.Mutex
	free    int // negative: there are more than there should be
	waiting int
	// lines are the resources with waiting passes; the first one has the next turn.
	lines []*line
	// returned is when a permit was returned last. Watched is set if a timer waits for the next one.
	returned time.Time
	watched  bool
}

// patience is the time without a returned permit after which there is one more.
const patience = time.Second

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

// Begin waits for the permit of a pass that begins. It returns false without one if it was stopped:
// the code of users may have all permits, and never return.
func (p *Permits) Begin(resource string, stop <-chan struct{}) bool {
	ready := p.acquire(resource, func(l *line, ready chan struct{}) { l.beginning = append(l.beginning, ready) })
	select {
	case <-ready:
		return true
	case <-stop:
		return !p.leave(resource, ready)
	}
}

// leave takes a pass that has not begun out of its line. It returns false if the pass has a permit by
// now.
func (p *Permits) leave(resource string, ready chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.lines, func(l *line) bool { return l.resource == resource && slices.Contains(l.beginning, ready) })
	if i < 0 {
		return false
	}
	l := p.lines[i]
	l.beginning = slices.DeleteFunc(l.beginning, func(other chan struct{}) bool { return other == ready })
	if len(l.finishing)+len(l.beginning) == 0 {
		p.lines = slices.Delete(p.lines, i, i+1)
	}
	p.waiting--
	return true
}

// Continue waits for the permit of a pass that has called a handler. It is limited by the
// work that others do with their permits, and by the code of users that does not return, so it needs no
// context.
func (p *Permits) Continue(resource string) {
	<-p.acquire(resource, func(l *line, ready chan struct{}) { l.finishing = append(l.finishing, ready) })
}

// acquire returns a channel that is closed when the pass has its permit.
func (p *Permits) acquire(resource string, join func(l *line, ready chan struct{})) (ready chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		return granted
	}
	ready = make(chan struct{})
	join(p.lineOf(resource), ready)
	p.waiting++
	if !p.watched {
		p.watched = true
		p.returned = time.Now()
		time.AfterFunc(patience, p.addIfStuck)
	}
	return ready
}

// granted is closed.
var granted = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// addIfStuck adds a permit if none was returned for too long, for a pass that finishes.
func (p *Permits) addIfStuck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched = false
	if p.waiting == 0 {
		return
	}
	if time.Since(p.returned) >= patience && p.handToFinishing() {
		p.free--
	}
	if p.waiting > 0 {
		p.watched = true
		time.AfterFunc(patience, p.addIfStuck)
	}
}

// handToFinishing hands a permit to a pass that finishes. It returns false if none waits. The lock is
// held.
func (p *Permits) handToFinishing() bool {
	i := slices.IndexFunc(p.lines, func(l *line) bool { return len(l.finishing) > 0 })
	if i < 0 {
		return false
	}
	p.lines[i].finished = 0 // none that begins
	p.handTo(i)
	return true
}

// handTo hands a permit to the next pass of a line. The lock is held.
func (p *Permits) handTo(i int) {
	l := p.lines[i]
	p.waiting--
	close(l.pop())
	p.lines = slices.Delete(p.lines, i, i+1)
	if len(l.finishing)+len(l.beginning) > 0 {
		p.lines = append(p.lines, l)
	}
}

func (p *Permits) lineOf(resource string) *line {
	i := slices.IndexFunc(p.lines, func(l *line) bool { return l.resource == resource })
	if i < 0 {
		i = len(p.lines)
		p.lines = append(p.lines, &line{resource: resource})
	}
	return p.lines[i]
}

// Release returns a permit, which is handed to the next waiting pass. One that was added is only for
// passes that finish: those that begin could keep it, too.
func (p *Permits) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returned = time.Now()
	added := p.free < 0
	switch {
	case added && p.handToFinishing():
	case added, len(p.lines) == 0:
		p.free++
	default:
		p.handTo(0)
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
	next = (*from)[0]
	*from = (*from)[1:]
	return next
}

// Waiting returns the number of passes that wait.
func (p *Permits) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
