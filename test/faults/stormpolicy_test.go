package faults

import (
	"io"
	"net/http"
	"strings"
)

// policy denies writes to an object.
type policy struct {
	// left is the number of writes to deny; dry runs do not count.
	left int
	// denies is set from a denied write until one is admitted.
	denies bool
	// used is set if the policy has ever denied something.
	used bool
}

// deny begins a policy that denies a number of writes.
func (s *subject) deny(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy.left, s.policy.used = writes, true
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
