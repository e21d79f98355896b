package faults

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// gate is what the watches of an operator go through. While it is shut, events
// are held back. What was held back comes one by one afterwards: nobody may rely
// on seeing the last event of a burst first.
type gate struct {
	mu      sync.Mutex
	blocked chan struct{} // closed when the gate opens; nil: it is open
	slow    bool
	expired bool // the next watch has to learn that its version is too old
	streams map[*stream]struct{}
}

// pace is the pause between events after the gate was shut.
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

// cut breaks the watches, and keeps them broken until the gate opens. Then the
// version to continue from is too old: everything has to be listed again.
func (g *gate) cut() {
	g.shut()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expired = true
	for s := range g.streams {
		_ = s.body.Close()
	}
}

// open lets everything through again; it reports whether the gate was shut.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.blocked == nil {
		return false
	}
	close(g.blocked)
	g.blocked = nil
	return true
}

// began tells that there is a watch.
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
	s := &stream{gate: g, body: answer.Body, lines: bufio.NewReader(answer.Body), closed: make(chan struct{})}
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

// pass waits until the gate is open; false if the one who waits gives up.
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

// stream is the body of a watch: one event a line.
type stream struct {
	gate   *gate
	body   io.ReadCloser
	lines  *bufio.Reader
	rest   []byte
	once   sync.Once
	closed chan struct{}
}

func (s *stream) Read(into []byte) (int, error) {
	if len(s.rest) == 0 {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if !s.gate.pass(s.closed) {
			return 0, io.ErrClosedPipe
		}
		s.rest = line
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
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

// failure is an answer of the API server that it has not given.
func failure(sent *http.Request, code int, reason string) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `"}`
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: sent,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(status)),
	}
}
