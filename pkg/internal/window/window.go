package window

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// The pause of a window of one request that is refused. The API server asks for one second.
const (
	defaultPause = time.Second
	maxPause     = 10 * time.Second
)

// ErrNotSent is the error of a request whose context has ended while it waited. It was not sent.
var ErrNotSent = errors.New("the request was not sent: it has waited for other requests to the API server")

// Window is the window of one operator. It is safe for concurrent use.
type Window struct {
	mu       sync.Mutex
	rule     rule
	inFlight int
	waiting  int
	paused   bool // by a refusal, for moments
	lines    map[resource]*line
	turns    list.List // of *line with requests that wait; the first one is next
	closed   map[string]int64
}

// line has the requests for one resource.
type line struct {
	resource resource
	inFlight int
	waiting  list.List     // of *ticket, the oldest first
	turn     *list.Element // in the turns; nil if no request waits
	paces    [verbs]pace
}

// ticket is a request that waits.
type ticket struct {
	seat    seat
	granted chan struct{} // closed when there is a seat
}

// seat is the right to have a request in flight.
type seat struct {
	line  *line
	round int
	calm  bool // few others were in flight when it was taken
}

// State is the state of a window at one moment.
type State struct {
	Size, InFlight, Waiting int
	// Closed counts how often the window has closed, by the Reason.
	Closed map[string]int64
}

// New returns a window that opens up to the limit.
func New(limit int) *Window {
	w := &Window{rule: newRule(limit), lines: map[resource]*line{}, closed: map[string]int64{}}
	for _, why := range Reasons() {
		w.closed[string(why)] = 0
	}
	return w
}

// Limit changes how far the window opens.
func (w *Window) Limit(limit int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rule.limit(limit)
	w.grant()
}

// State returns the current state.
func (w *Window) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{Size: w.rule.size, InFlight: w.inFlight, Waiting: w.waiting, Closed: maps.Clone(w.closed)}
}

// enter waits for a seat until one of the contexts is done. The second one can be nil.
func (w *Window) enter(ctx, until context.Context, of resource) (seat, error) {
	w.mu.Lock()
	l := w.lineOf(of)
	if w.turns.Len() == 0 && w.hasSeat(l) {
		s := w.take(l)
		w.mu.Unlock()
		return s, nil
	}
	t := &ticket{granted: make(chan struct{})}
	place := l.waiting.PushBack(t)
	w.waiting++
	if l.turn == nil {
		l.turn = w.turns.PushBack(l)
	}
	w.grant()
	w.mu.Unlock()

	var ended <-chan struct{}
	if until != nil {
		ended = until.Done()
	}
	select {
	case <-t.granted:
		return t.seat, nil
	case <-ctx.Done():
	case <-ended:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-t.granted: // in the meantime
		w.giveBack(t.seat)
		w.grant()
	default:
		w.leave(l, place)
	}
	cause := ctx.Err()
	if cause == nil {
		cause = until.Err()
	}
	return seat{}, fmt.Errorf("%w: %w", ErrNotSent, cause)
}

// lineOf returns the line of a resource.
func (w *Window) lineOf(of resource) *line {
	l := w.lines[of]
	if l == nil {
		of = of.clone()
		l = &line{resource: of}
		w.lines[of] = l
	}
	return l
}

// hasSeat reports whether a request of the line can be sent. A resource without any request in flight
// finds one seat more than the window has, because the requests of another one may take long. It does
// not after a refusal: that request would be refused, and come later than with its turn.
func (w *Window) hasSeat(l *line) bool {
	size := w.rule.size
	if size > 1 && l.inFlight == 0 && !w.rule.isCareful() {
		size++
	}
	return !w.paused && w.inFlight < size
}

// take takes a seat.
func (w *Window) take(l *line) seat {
	w.inFlight++
	l.inFlight++
	return seat{line: l, round: w.rule.sent(w.inFlight), calm: w.inFlight <= Calm}
}

// giveBack gives a seat back.
func (w *Window) giveBack(s seat) {
	w.inFlight--
	s.line.inFlight--
}

// grant gives free seats to requests that wait. The resources take turns.
func (w *Window) grant() {
	for e := w.turns.Front(); e != nil; {
		l := e.Value.(*line) //nolint:errcheck // there is nothing else in the list
		next := e.Next()
		if w.hasSeat(l) {
			t := w.leave(l, l.waiting.Front())
			if l.turn != nil {
				w.turns.MoveToBack(e)
			}
			t.seat = w.take(l)
			close(t.granted)
			next = w.turns.Front()
		}
		e = next
	}
}

// leave removes a request from its line.
func (w *Window) leave(l *line, place *list.Element) *ticket {
	t := l.waiting.Remove(place).(*ticket) //nolint:errcheck // there is nothing else in the list
	w.waiting--
	if l.waiting.Len() == 0 {
		w.turns.Remove(l.turn)
		l.turn = nil
	}
	return t
}

// outcome describes the answer to a request, or that there is none.
type outcome struct {
	verb    verb
	took    time.Duration
	isTimed bool          // the time says something about the server
	failure Reason        // or none
	pause   time.Duration // that the server asks for
}

// exit gives a seat back after the request, and adapts the window.
func (w *Window) exit(s seat, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	calm := s.calm && w.inFlight <= Calm
	w.giveBack(s)
	size := w.rule.size
	var why Reason
	switch {
	case o.failure != "":
		why = w.rule.failed(s.round, o.failure)
	case o.isTimed:
		late := s.line.paces[o.verb].isLate(o.took, calm)
		why = w.rule.answered(s.round, late, w.waiting > 0)
	}
	if why != "" {
		w.closed[string(why)]++
		if size == 1 && (why == Refused || why == Unavailable) {
			w.pause(o.pause)
		}
	}
	w.grant()
}

// pause lets no request begin for some time.
func (w *Window) pause(asked time.Duration) {
	if asked <= 0 {
		asked = defaultPause
	}
	w.paused = true
	time.AfterFunc(min(asked, maxPause), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.paused = false
		w.grant()
	})
}
