package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// policy denies writes to an object.
type policy struct {
	// left is the number of writes to deny; dry runs do not count.
	left int
	// denies is set from a denied write until one is admitted.
	denies bool
	// field is set if it denies only writes to one field, and as invalid. It lasts for so many writes.
	field int
	// used is set if the policy has ever denied something.
	used bool
}

// deny begins a policy that denies a number of writes.
func (s *subject) deny(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy.left, s.policy.used = writes, true
}

// ban begins a policy that rejects a number of writes to the journal.
func (s *subject) ban(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy.field = writes
}

// isBanned reports whether the policy rejects a write to the journal. The subject is locked.
func (s *subject) isBanned(w *stormWrite) bool {
	var patch struct{ Spec struct{ Journal []string } }
	if s.policy.field == 0 || json.Unmarshal(w.body(), &patch) != nil || len(patch.Spec.Journal) == 0 {
		return false
	}
	if !w.dry() {
		s.policy.field--
	}
	for _, entry := range patch.Spec.Journal {
		s.banned[entry] = s.banned[entry] || !slices.Contains(s.committed.journal("spec"), entry)
	}
	return true
}

// invalid is the response of the API server if a validation rejects a field.
func invalid(sent *http.Request, name string) *http.Response {
	answer := failure(sent, http.StatusUnprocessableEntity, "Invalid")
	answer.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,` +
		`"message":"KopfExample.kopf.dev \"` + name + `\" is invalid: spec.journal: Invalid value: no entries today","details":{"name":"` + name + `"}}`))
	return answer
}

// isDenied reports whether the policy denies a write. The subject is locked.
func (s *subject) isDenied(w *stormWrite) bool {
	p := &s.policy
	if !w.dry() {
		if p.denies = p.left > 0; p.denies {
			p.left--
		}
	}
	return p.denies
}

// denial is the response of the API server if an admission policy denies a write.
func denial(sent *http.Request) *http.Response {
	answer := failure(sent, http.StatusForbidden, "Forbidden")
	answer.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,` +
		`"message":"admission webhook \"policy.example.com\" denied the request: no changes today"}`))
	return answer
}
