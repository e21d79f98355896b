package faults

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// route sends the requests of an operator through the storm.
func (o *stormOperator) route(sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	path := sent.URL.Path
	_, object, named := strings.Cut(path, "/kopfexamples/")
	name, _, _ := strings.Cut(object, "/")
	switch {
	case named && sent.Method == http.MethodPatch:
		return o.write(o.storm.subject(name), &write{next: next, request: sent})
	case named && sent.Method == http.MethodGet:
		return o.read(o.storm.subject(name), sent, next)
	case strings.HasSuffix(path, "/kopfexamples") && sent.URL.Query().Get("watch") == "true":
		return o.watches.watch(sent, next)
	}
	return next.RoundTrip(sent)
}

// stormWrite is a write in a storm.
type stormWrite struct {
	*stormOperator
	*write
	subject *subject
	dice    *rand.Rand
}

// stormFault is a fault of one write in a storm, which is in place of the write.
type stormFault struct {
	name string
	at   func(w stormWrite) (*http.Response, error)
}

var stormFaults = []stormFault{
	{"the operator dies before it", func(w stormWrite) (*http.Response, error) {
		w.die()
		return nil, errDead
	}},
	{"the operator dies after it", func(w stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		w.die()
		return nil, errDead
	}},
	{"the answer is lost", func(w stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		return nil, errLost
	}},
	{"500 after the commit", func(w stormWrite) (*http.Response, error) {
		_, _ = w.commit()
		return failure(w.request, http.StatusInternalServerError, "InternalError"), nil
	}},
	{"503 without the commit", func(w stormWrite) (*http.Response, error) {
		return failure(w.request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	}},
	{"404 of a proxy", func(w stormWrite) (*http.Response, error) {
		return page(w.request, http.StatusNotFound), nil
	}},
	{"403 of a proxy", func(w stormWrite) (*http.Response, error) {
		return page(w.request, http.StatusForbidden), nil
	}},
	{"the answer is cut off", func(w stormWrite) (*http.Response, error) {
		return cutOff(w.commit())
	}},
	{"it is on its way still", func(w stormWrite) (*http.Response, error) {
		w.postpone()
		return nil, errLost
	}},
	{"the watches stall", func(w stormWrite) (*http.Response, error) {
		w.stall(w.dice, (*gate).shut)
		return w.commit()
	}},
	{"the watches break", func(w stormWrite) (*http.Response, error) {
		w.stall(w.dice, (*gate).cut)
		return w.commit()
	}},
	{"another client is faster", func(w stormWrite) (*http.Response, error) {
		w.subject.edit(w.dice)
		return w.commit()
	}},
	{"another client is next", func(w stormWrite) (*http.Response, error) {
		defer w.subject.edit(w.dice)
		return w.commit()
	}},
}

const (
	// faultless is how many writes succeed for each that fails.
	faultless = 2
	// stormyRequests is the number of writes and of reads of an object that can fail, so
	// that a storm ends.
	stormyRequests = 60
)

// write sends a write through the storm.
func (o *stormOperator) write(s *subject, sent *write) (*http.Response, error) {
	w := stormWrite{stormOperator: o, write: sent, subject: s}
	at := s.attempted(&w)
	if at == nil {
		return w.commit()
	}
	return at(w)
}

// attempted notes a write that an operator is about to send, and returns its fault.
func (s *subject) attempted(w *stormWrite) func(stormWrite) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	w.number = s.writes
	w.dice = s.storm.dice(s.name, "write", w.number)
	s.note("%s writes #%d %s: %s", w.name, w.number, w.target(), bytes.TrimSpace(w.body()))
	n := w.dice.IntN(len(stormFaults) * (1 + faultless))
	if s.storm.calm.Load() || s.writes > stormyRequests || n >= len(stormFaults) {
		return nil
	}
	s.faults++
	s.note("#%d: %s", w.number, stormFaults[n].name)
	return stormFaults[n].at
}

// commit sends the write to the API server, after the one that was on its way still.
func (w stormWrite) commit() (*http.Response, error) {
	w.subject.mu.Lock()
	defer w.subject.mu.Unlock()
	if w.dead.Load() {
		return nil, errDead
	}
	if late := w.subject.late; late != nil {
		w.subject.late = nil
		_, _ = w.subject.send(late)
	}
	return w.subject.send(w.write)
}

// postpone commits the write later, before the next one.
func (w stormWrite) postpone() {
	w.subject.mu.Lock()
	defer w.subject.mu.Unlock()
	if !w.dead.Load() {
		w.subject.late = w.later()
	}
}

// read sends a read of an object through the storm.
func (o *stormOperator) read(s *subject, sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	fault := s.readFault()
	if fault != "" {
		s.note("a read of %s: %s", o.name, fault)
	}
	switch fault {
	case "no answer":
		return nil, errLost
	case "404 of a proxy":
		return page(sent, http.StatusNotFound), nil
	case "403 of a proxy":
		return page(sent, http.StatusForbidden), nil
	case "503":
		return failure(sent, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	case "the answer is cut off":
		return cutOff(next.RoundTrip(sent))
	}
	return next.RoundTrip(sent)
}

// readFault returns the fault of the next read, or an empty text.
func (s *subject) readFault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	dice := s.storm.dice(s.name, "read", s.reads)
	if s.storm.calm.Load() || s.reads > stormyRequests || dice.IntN(4) > 0 {
		return ""
	}
	return oneOf(dice, "no answer", "404 of a proxy", "403 of a proxy", "503", "the answer is cut off")
}

// page returns the error page of a proxy, which is not a response of the API server.
func page(sent *http.Request, code int) *http.Response {
	answer := failure(sent, code, "")
	answer.Header.Set("Content-Type", "text/html")
	answer.Body = io.NopCloser(strings.NewReader("<html><body>There is no such site.</body></html>"))
	return answer
}

// cutOff breaks the connection in the middle of a response.
func cutOff(answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(content[:len(content)/2]), broken{}))
	return answer, nil
}

// broken is a connection that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
