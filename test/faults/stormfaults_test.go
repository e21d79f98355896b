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
	subject := o.storm.named(sent)
	child, isFamily := isOfChildren(path)
	switch {
	case isFamily && child != "":
		return o.child(child, sent, next)
	case isFamily && sent.URL.Query().Get("watch") == "true":
		return o.nursery.watch(sent, next)
	case subject != nil && sent.Method == http.MethodGet && sent.URL.Query().Get("watch") == "":
		return o.find(subject, sent, next)
	case named && sent.Method == http.MethodPatch:
		return o.write(o.storm.subject(name), &write{next: next, request: sent})
	case named && sent.Method == http.MethodGet:
		return o.read(o.storm.subject(name), sent, next)
	case strings.HasSuffix(path, "/kopfexamples") && o.refuses(sent):
		return failure(sent, http.StatusUnprocessableEntity, "Invalid"), nil
	case strings.HasSuffix(path, "/kopfexamples") && sent.URL.Query().Get("watch") == "true":
		if sent.URL.Query().Get("sendInitialEvents") == "true" {
			o.listed.Add(1)
		}
		return o.watches.watch(sent, next)
	case strings.Contains(path, "/leases"):
		return o.lease(sent, next)
	case strings.HasSuffix(path, "/kopfexamples"):
		return o.list(sent, next)
	}
	return next.RoundTrip(sent)
}

// stormWrite is a write in a storm.
type stormWrite struct {
	*stormOperator
	*write
	subject *subject
	dice    *rand.Rand
	cut     bool   // only a part of the response reaches the operator
	after   uint64 // the version that the write has created
	uid     string // of the written object
	sent    ends   // of a write that arrives late
}

const (
	// faultless is how many writes succeed for each that fails, and faultlessIfPatient in patient
	// storms.
	faultless          = 2
	faultlessIfPatient = 7
	// stormyRequests is the number of writes and of reads of an object that can fail, so
	// that a storm ends.
	stormyRequests = 80
)

// write sends a write through the storm.
func (o *stormOperator) write(s *subject, sent *write) (*http.Response, error) {
	defer o.works()()
	w := &stormWrite{stormOperator: o, write: sent, subject: s}
	at := s.attempted(w)
	answer, err := at(w)
	s.returned(w, answer, err)
	return answer, err
}

// attempted notes a write that an operator is about to send, and returns how it is sent.
func (s *subject) attempted(w *stormWrite) func(*stormWrite) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	w.number = s.writes
	w.dice = s.storm.dice(s.name, "write", w.number)
	s.note("%s writes #%d %s: %.6000s", w.name, w.number, w.target(), bytes.TrimSpace(w.body()))
	if !w.dead.Load() {
		s.judgeRequest(w)
		s.noteRead(w.stormOperator)
	}
	if s.storm.calm.Load() || s.writes > stormyRequests {
		return (*stormWrite).commit
	}
	fault := w.pick()
	if fault.name != "" {
		s.faults++
		s.note("#%d: %s", w.number, fault.name)
	}
	return fault.at
}

// commit sends the write to the API server, after the one that was on its way still.
func (w *stormWrite) commit() (*http.Response, error) {
	w.subject.mu.Lock()
	defer w.subject.mu.Unlock()
	if w.dead.Load() {
		return nil, errDead
	}
	if late := w.subject.late; late != nil {
		w.subject.late = nil
		_, _ = w.subject.send(late)
		if w.subject.damaged {
			// The operator may have given up what the write contains, and called handlers again,
			// whose ends are not in it.
			w.subject.ledger.Loosen(tiled...)
		}
	}
	if w.subject.isDenied(w) {
		return denial(w.request), nil
	}
	if w.subject.isBanned(w) {
		w.subject.note("#%d is rejected by a policy", w.number)
		return invalid(w.request, w.subject.name), nil
	}
	return w.subject.send(w)
}

// postpone commits the write later, before the next one.
func (w *stormWrite) postpone() {
	w.subject.mu.Lock()
	defer w.subject.mu.Unlock()
	if !w.dead.Load() {
		late := *w
		late.write, late.sent = w.later(), w.subject.endsSoFar()
		w.subject.late = &late
	}
}

// read sends a read of an object through the storm.
func (o *stormOperator) read(s *subject, sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	defer o.works()()
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
	case "404 of a lagging API server":
		return missing(sent, s.name), nil
	case "the answer is cut off":
		return cutOff(next.RoundTrip(sent))
	}
	answer, err := next.RoundTrip(sent)
	if err != nil || strings.Contains(sent.Header.Get("Accept"), "PartialObjectMetadata") {
		return answer, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	s.hasRead(o, answer.StatusCode, content)
	return answer, nil
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
	return oneOf(dice, "no answer", "404 of a proxy", "403 of a proxy", "404 of a lagging API server", "503", "the answer is cut off")
}

// page returns the error page of a proxy, which is not a response of the API server.
func page(sent *http.Request, code int) *http.Response {
	answer := failure(sent, code, "")
	answer.Header.Set("Content-Type", "text/html")
	answer.Body = io.NopCloser(strings.NewReader("<html><body>There is no such site.</body></html>"))
	return answer
}

// missing returns the response of an API server that does not know an object.
func missing(sent *http.Request, name string) *http.Response {
	answer := failure(sent, http.StatusNotFound, "NotFound")
	answer.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,` +
		`"message":"kopfexamples.kopf.dev \"` + name + `\" not found","details":{"name":"` + name + `","group":"kopf.dev","kind":"kopfexamples"}}`))
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
