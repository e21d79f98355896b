package faults

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// gate lies between an operator and its watches. While it is shut, it holds back events.
// Afterwards, it delivers them one by one, because the operator must not depend on seeing the
// last event of a burst first.
type gate struct {
	mu      sync.Mutex
	blocked chan struct{} // closed when the gate opens; nil if it is open
	held    bool          // it stays shut until it is released
	slow    bool
	expired bool // the next watch fails because its version is too old
	ending  bool // the next event of a watch is that error
	streams map[*stream]struct{}
	// travel is how long an event is on its way; nil if a real network decides.
	travel func(*http.Request) time.Duration
}

// pace is the delay between events after the gate was shut.
const pace = 30 * time.Millisecond

func newGate() *gate { return &gate{streams: map[*stream]struct{}{}} }

// shut holds back all events from now on.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.blocked == nil {
		g.blocked, g.slow = make(chan struct{}), true
	}
}

// cut breaks the watches, and keeps them broken until the gate opens. Then the version to
// continue from is too old, so everything must be listed again.
func (g *gate) cut() {
	g.shut()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expired = true
	for s := range g.streams {
		_ = s.body.Close()
	}
}

// end makes the next event of a watch an error: the version to continue from is too old.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = true
}

// ends reports whether the next event must be an error.
func (g *gate) ends() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.ending = false }()
	return g.ending
}

// hold shuts the gate until release is called.
func (g *gate) hold() {
	g.shut()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = true
}

// release opens the gate although it was held, and reports whether it was shut.
func (g *gate) release() bool {
	g.mu.Lock()
	g.held = false
	g.mu.Unlock()
	return g.open()
}

// open opens the gate, and reports whether it was shut.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.blocked == nil || g.held {
		return false
	}
	close(g.blocked)
	g.blocked = nil
	return true
}

// began records that a watch exists.
func (g *gate) began() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.streams) > 0
}

// watch begins a watch.
func (g *gate) watch(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	if !g.pass(sent.Context().Done()) {
		return nil, sent.Context().Err()
	}
	if g.expires() {
		return failure(sent, http.StatusGone, "Expired"), nil
	}
	answer, err := next.RoundTrip(sent)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	s := &stream{gate: g, request: sent, body: answer.Body, lines: bufio.NewReader(answer.Body), closed: make(chan struct{})}
	answer.Body = s
	g.mu.Lock()
	defer g.mu.Unlock()
	g.streams[s] = struct{}{}
	return answer, nil
}

func (g *gate) expires() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.expired = false }()
	return g.expired
}

// pass waits until the gate is open. It returns false if the caller gives up.
func (g *gate) pass(done <-chan struct{}) bool {
	g.mu.Lock()
	blocked, slow := g.blocked, g.slow
	g.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-done:
			return false
		}
	}
	if slow {
		select {
		case <-time.After(pace):
		case <-done:
			return false
		}
	}
	return true
}

// stream is the body of a watch, with one event per line.
type stream struct {
	gate    *gate
	request *http.Request
	body    io.ReadCloser
	lines   *bufio.Reader
	rest    []byte
	once    sync.Once
	closed  chan struct{}
}

func (s *stream) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if !s.arrives() || !s.gate.pass(s.closed) {
			return 0, io.ErrClosedPipe
		}
		if s.gate.ends() {
			line = []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n")
		}
		s.rest = line
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// arrives waits until an event has arrived. It returns false if the stream is closed before.
func (s *stream) arrives() bool {
	if s.gate.travel == nil {
		return true
	}
	select {
	case <-time.After(s.gate.travel(s.request)):
		return true
	case <-s.closed:
		return false
	}
}

func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		delete(s.gate.streams, s)
	})
	return s.body.Close()
}

// failure returns a fake error response of the API server.
func failure(sent *http.Request, code int, reason string) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `"}`
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: sent,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(status)),
	}
}
