package faults

import (
	"math/rand/v2"
	"net/http"
	"strings"
)

// familyLife is what is known about the children of an object.
type familyLife struct {
	// childWrites, childReads, childFaults, and troubles count what has happened.
	childWrites, childReads, childFaults, troubles int
	// lateChild is a write that is committed before the next one, also if its operator is dead by then.
	lateChild *childWrite
	// additions is what others have added to children, by their uids.
	additions map[string][]addition
	// sights is what the handlers of children have seen.
	sights map[sighting]map[string]map[string]string
}

// sighting is what one operator knows about the children of one object.
type sighting struct {
	by  *stormOperator
	uid string
}

// sight returns the content of children by kind and name. The subject is locked.
func (s *subject) sight(o *stormOperator, uid string) map[string]map[string]string {
	if s.sights == nil {
		s.sights = map[sighting]map[string]map[string]string{}
	}
	if s.sights[sighting{o, uid}] == nil {
		s.sights[sighting{o, uid}] = map[string]map[string]string{}
	}
	return s.sights[sighting{o, uid}]
}

// calledFor notes the call of a handler that is about children, and returns its dice. It returns false if the operator
// is dead.
func (s *subject) calledFor(o *stormOperator, id string) (*rand.Rand, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.dead.Load() {
		return nil, false
	}
	s.note("%s calls %s", o.name, id)
	if o.paused.Load() {
		s.breach("%s was called by %s, which is paused", id, o.name)
	}
	if !o.leads.Load() {
		s.breach("%s was called by %s, which does not lead", id, o.name)
	}
	s.calls[id]++
	return s.storm.dice(s.name, id, s.calls[id]), true
}

// isOfChildren reports whether a request is for children, and returns the name of one, if it is for one.
func isOfChildren(path string) (name string, of bool) {
	for _, k := range kin {
		if strings.HasSuffix(path, "/"+k.plural) {
			return "", true
		}
		if _, name, found := strings.Cut(path, "/"+k.plural+"/"); found {
			return name, true
		}
	}
	return "", false
}

// parentOf returns the object that a child belongs to by its name.
func (s *storm) parentOf(child string) *subject {
	name, _, _ := strings.Cut(child, "-")
	return s.subject(name)
}

// child sends a request for one child through the storm.
func (o *stormOperator) child(name string, sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	defer o.works()()
	w := &childWrite{stormOperator: o, write: &write{next: next, request: sent}, subject: o.storm.parentOf(name), child: name}
	if sent.Method == http.MethodGet {
		return w.read()
	}
	return w.subject.attemptedChild(w)(w)
}

// childWrite is a write of a child in a storm.
type childWrite struct {
	*stormOperator
	*write
	subject *subject
	child   string
	dice    *rand.Rand
}

// childFault is a fault of one write of a child, which is in place of the write.
type childFault struct {
	name   string
	mortal bool // only if the operator may die
	at     func(w *childWrite) (*http.Response, error)
}

var childFaults = []childFault{
	{name: "the operator dies before it", mortal: true, at: func(w *childWrite) (*http.Response, error) {
		w.die()
		return nil, errDead
	}},
	{name: "the operator dies after it", mortal: true, at: func(w *childWrite) (*http.Response, error) {
		_, _ = w.commit()
		w.die()
		return nil, errDead
	}},
	{name: "the answer is lost", at: func(w *childWrite) (*http.Response, error) {
		_, _ = w.commit()
		return nil, errLost
	}},
	{name: "500 after the commit", at: func(w *childWrite) (*http.Response, error) {
		_, _ = w.commit()
		return failure(w.request, http.StatusInternalServerError, "InternalError"), nil
	}},
	{name: "a timeout after the commit, to be repeated", at: func(w *childWrite) (*http.Response, error) {
		_, _ = w.commit()
		answer := failure(w.request, http.StatusGatewayTimeout, "Timeout")
		answer.Header.Set("Retry-After", "0")
		return answer, nil
	}},
	{name: "503 without the commit", at: func(w *childWrite) (*http.Response, error) {
		return failure(w.request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	}},
	{name: "404 of a proxy", at: func(w *childWrite) (*http.Response, error) {
		return page(w.request, http.StatusNotFound), nil
	}},
	{name: "403 of a proxy", at: func(w *childWrite) (*http.Response, error) {
		return page(w.request, http.StatusForbidden), nil
	}},
	{name: "the answer is cut off", at: func(w *childWrite) (*http.Response, error) { return cutOff(w.commit()) }},
	{name: "it is on its way still", at: func(w *childWrite) (*http.Response, error) {
		w.postpone()
		return nil, errLost
	}},
	{name: "the watches stall", at: func(w *childWrite) (*http.Response, error) {
		w.stall(w.dice, (*gate).shut)
		return w.commit()
	}},
	{name: "another client is faster", at: func(w *childWrite) (*http.Response, error) {
		w.subject.meddle(w.dice)
		return w.commit()
	}},
	{name: "another client is next", at: func(w *childWrite) (*http.Response, error) {
		defer w.subject.meddle(w.dice)
		return w.commit()
	}},
	{name: "another client changes the object first", at: func(w *childWrite) (*http.Response, error) {
		w.subject.edit(w.dice)
		return w.commit()
	}},
	{name: "another client replaces the object", at: func(w *childWrite) (*http.Response, error) {
		w.subject.replaceOnce()
		return w.commit()
	}},
}

// attemptedChild notes a write that an operator is about to send, and returns how it is sent: one of four fails.
func (s *subject) attemptedChild(w *childWrite) func(*childWrite) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.childWrites++
	w.number = s.childWrites
	w.dice = s.storm.dice(s.name, "child write", w.number)
	s.note("%s %s %s (%d): %.3000s", w.name, strings.ToLower(w.request.Method), w.child, w.number, w.body())
	if s.storm.calm.Load() || s.childWrites > stormyRequests || w.dice.IntN(4) > 0 {
		return (*childWrite).commit
	}
	fault := oneOf(w.dice, childFaults...)
	if fault.mortal && s.storm.steady {
		return (*childWrite).commit
	}
	s.childFaults++
	s.note("(%d): %s", w.number, fault.name)
	return fault.at
}

// commit sends the write to the API server, after the one that was on its way still.
func (w *childWrite) commit() (*http.Response, error) {
	s := w.subject
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.dead.Load() {
		return nil, errDead
	}
	s.commitLateChild()
	return s.deliver(w)
}

// deliver sends the write, and notes the answer. The subject is locked.
func (s *subject) deliver(w *childWrite) (*http.Response, error) {
	answer, content, err := w.send()
	if err == nil {
		s.note("(%d) is answered with %d: %.500s", w.number, answer.StatusCode, content)
	}
	return answer, err
}

// postpone commits the write later, before the next one of a child.
func (w *childWrite) postpone() {
	w.subject.mu.Lock()
	defer w.subject.mu.Unlock()
	w.subject.commitLateChild()
	late := *w
	late.write = w.later()
	w.subject.lateChild = &late
}

// commitLateChild sends the write that was on its way still. The subject is locked.
func (s *subject) commitLateChild() {
	if late := s.lateChild; late != nil {
		s.lateChild = nil
		s.note("(%d) arrives late", late.number)
		_, _ = s.deliver(late) //nolint:bodyclose // it is read already
	}
}

// read sends a read of a child through the storm.
func (w *childWrite) read() (*http.Response, error) {
	s := w.subject
	s.mu.Lock()
	s.childReads++
	dice := s.storm.dice(s.name, "child read", s.childReads)
	fails := !s.storm.calm.Load() && s.childReads < stormyRequests && dice.IntN(4) == 0
	s.mu.Unlock()
	if !fails {
		return w.next.RoundTrip(w.request)
	}
	s.note("a read of %s by %s fails", w.child, w.name)
	switch dice.IntN(5) {
	case 0:
		return nil, errLost
	case 1:
		return page(w.request, http.StatusNotFound), nil
	case 2:
		return page(w.request, http.StatusForbidden), nil
	case 3:
		return failure(w.request, http.StatusServiceUnavailable, "ServiceUnavailable"), nil
	default:
		return cutOff(w.next.RoundTrip(w.request))
	}
}
