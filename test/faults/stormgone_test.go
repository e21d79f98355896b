package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// mostReplacements limits how often an object is replaced by another one of the same name.
const mostReplacements = 3

// replaceOnce replaces the object unless that has happened too often.
func (s *subject) replaceOnce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.canBeReplaced() {
		s.bury()
		s.create(s.storm.dice(s.name, "replacement", s.replacements))
	}
}

// vanish changes and deletes the object by force before the watches show it, and creates another one a moment
// later.
func (s *subject) vanish(w *stormWrite) {
	s.edit(w.dice)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.canBeReplaced() {
		return
	}
	w.watches.shut()
	s.bury()
	s.absent = true
	time.AfterFunc(50*time.Millisecond, func() { w.watches.open() })
}

func (s *subject) canBeReplaced() bool {
	return !s.deleting && !s.absent && !s.storm.calm.Load() && s.replacements < mostReplacements
}

// reappear creates the object if it has vanished.
func (s *subject) reappear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.absent {
		s.absent = false
		s.create(s.storm.dice(s.name, "replacement", s.replacements))
	}
}

// bury deletes the object regardless of its finalizers. The subject is locked.
func (s *subject) bury() {
	s.replacements++
	s.storm.try(s.storm.cluster.Client().Patch(context.Background(), s.object.DeepCopy(), merge(`{"metadata":{"finalizers":null}}`)))
	s.storm.try(s.storm.cluster.Client().Delete(context.Background(), s.object.DeepCopy()))
	s.note("another client has deleted the object by force")
	s.buried = s.uid
	s.begin()
}

// hide makes the object seem to be gone for an operator. Another client changes it afterwards, so
// that the operator notices its mistake.
func (s *subject) hide(o *stormOperator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget() // the operator, too, forgets everything about it
	delete(s.sights, sighting{o, s.uid})
	s.hiddenFrom = o
	time.AfterFunc(100*time.Millisecond, s.touch)
}

// find sends a request for a list that shows whether an object exists.
func (o *stormOperator) find(s *subject, sent *http.Request, next http.RoundTripper) (*http.Response, error) {
	s.mu.Lock()
	uid := cmp.Or(s.uid, s.buried)
	s.mu.Unlock()
	sent = sent.Clone(sent.Context())
	sent.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	answer, err := next.RoundTrip(sent)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	list := struct {
		Metadata map[string]any
		Items    []struct{ Metadata struct{ UID string } }
	}{}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.hiddenFrom == o:
		s.hiddenFrom = nil
		content, _ = json.Marshal(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": list.Metadata, "items": []any{}})
	case len(list.Items) == 0 && s.storm.strict():
		s.note("%s learns that the object does not exist", o.name)
		s.noteRead(o)
		if v := s.view(o); v.asked == uid {
			v.gone = uid
		}
	case len(list.Items) > 0 && list.Items[0].Metadata.UID != s.unreadUID:
		s.noteRead(o) // another object has the name: the watch will tell
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// named returns the object that a list is limited to, or nil.
func (s *storm) named(sent *http.Request) *subject {
	name, found := strings.CutPrefix(sent.URL.Query().Get("fieldSelector"), "metadata.name=")
	i := slices.IndexFunc(s.subjects, func(o *subject) bool { return o.name == name })
	if !found || i < 0 {
		return nil
	}
	return s.subjects[i]
}
