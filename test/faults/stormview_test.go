package faults

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// view is what one operator must know about one object from the responses that have reached
// it. The rules of the write protocol follow from it, whatever the operator remembers.
type view struct {
	// floor is the highest version in a response, about the object that the operator has
	// written to: what it has read of another one of the name, it may forget.
	floor uint64
	uid   string
	// blind is the uid of the object, from a write whose outcome is unknown until it is read.
	blind string
	// refused are the versions of writes that met a conflict.
	refused []uint64
	// asked is the uid of the object that the operator has written to or called a handler for last;
	// empty for an earlier object of the name.
	asked string
	// gone is the uid of an object that does not exist anymore, according to a list.
	gone string
}

// view returns the view of an operator. The subject is locked.
func (s *subject) view(o *stormOperator) *view {
	if s.views[o] == nil {
		s.views[o] = &view{}
	}
	return s.views[o]
}

// judgeRequest checks a write before it is sent. The subject is locked.
func (s *subject) judgeRequest(w *stormWrite) {
	patch := map[string]any{}
	if err := json.Unmarshal(w.body(), &patch); err != nil {
		s.breach("#%d is not JSON: %v", w.number, err)
		return
	}
	metadata, _ := patch["metadata"].(map[string]any)
	text, _ := metadata["resourceVersion"].(string)
	version := number(text)
	v := s.view(w.stormOperator)
	if v.asked = s.uid; version < s.born {
		v.asked = ""
	}
	switch {
	case version == 0:
		s.breach("#%d is not bound to a version", w.number)
	case len(patch) == 1 && len(metadata) == 1:
		s.breach("#%d is empty", w.number)
	case w.dry():
	case v.blind != "" && v.blind == s.uid:
		s.breach("#%d follows a write with an unknown outcome, and the object was not read", w.number)
	case slices.Contains(v.refused, version):
		s.breach("#%d is bound to a version for which a write has met a conflict", w.number)
	case version < v.floor:
		s.breach("#%d is bound to version %d, after version %d was returned", w.number, version, v.floor)
	}
}

// returned notes the response to a write that reaches the operator.
func (s *subject) returned(w *stormWrite, answer *http.Response, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view(w.stormOperator)
	switch {
	case w.dry():
	case err != nil || w.cut || isProxy(answer) || answer.StatusCode >= http.StatusInternalServerError:
		if number(w.version()) >= s.born { // not of an earlier object
			v.blind = s.uid
		}
	case answer.StatusCode == http.StatusConflict:
		v.refused = append(v.refused, number(w.version()))
	case answer.StatusCode < 300:
		v.blind, v.floor, v.uid = "", max(v.floor, w.after), w.uid
	}
}

// hasRead notes the response to a direct read that reaches the operator.
func (s *subject) hasRead(o *stormOperator, code int, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view(o)
	if read, err := newState(content); err == nil && code == http.StatusOK && string(read.body.UID()) == v.uid {
		v.floor = max(v.floor, number(read.body.ResourceVersion()))
	}
	v.blind = ""
	s.noteRead(o)
}

// number returns a version as a number, or 0.
func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// version returns the version that the write is bound to.
func (w *write) version() string {
	var patch struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(w.body(), &patch)
	return patch.Metadata.ResourceVersion
}

// isProxy reports whether a response does not come from the API server.
func isProxy(answer *http.Response) bool { return answer.Header.Get("Content-Type") == "text/html" }
