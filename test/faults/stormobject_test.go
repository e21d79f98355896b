package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/reconcile/tilingtest"
	"github.com/kopf-go/kopf/test/testenv"
)

// subject is one object in a storm, with everything that is known about it. All of it comes
// from the calls of the handlers, and from the responses of the API server.
type subject struct {
	storm  *storm
	name   string
	object *unstructured.Unstructured

	// mu is also locked during every request that changes the object, so that their order
	// is known.
	mu        sync.Mutex
	ledger    *tilingtest.Ledger
	committed state
	// uid is of the current object of the name.
	uid string
	// others is what other clients have written.
	others  string
	changes int
	late    *write // to be committed before the next one
	// writes, reads, calls, and faults count what has happened.
	writes, reads, faults int
	calls                 map[string]int
	// results contains results of handlers that are not recorded yet.
	results map[string]string
	// said contains the handlers of the deletion that have ended: true if it is recorded.
	said map[string]bool
	// deleting is set when others have deleted the object; mourned if it had our finalizer
	// then; released when that was removed.
	deleting, mourned, released bool
}

// tiled are the handlers that must see every change since the creation.
var tiled = []string{"field_a/spec.a", "field_b/spec.b", "all", "parent/x", "parent/y", "parent/field/spec.a"}

func newSubject(s *storm, name string) *subject {
	return &subject{
		storm: s, name: name, ledger: tilingtest.New(tiled...),
		object: testenv.NewObject("KopfExample", s.namespace, name, map[string]any{"a": int64(0), "b": int64(0)}),
		calls:  map[string]int{}, results: map[string]string{}, said: map[string]bool{},
	}
}

func (s *storm) subject(name string) *subject {
	return s.subjects[slices.IndexFunc(s.subjects, func(o *subject) bool { return o.name == name })]
}

func (s *subject) note(format string, args ...any) {
	s.storm.note("%-5s  %s", s.name, fmt.Sprintf(format, args...))
}

func (s *subject) breach(format string, args ...any) {
	s.storm.breach("%s: %s", s.name, fmt.Sprintf(format, args...))
}

// called notes the call of a handler, and returns how many there were. It returns false
// if the operator is dead.
func (s *subject) called(o *stormOperator, id string, c *kopf.Change) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.dead.Load() {
		return 0, false
	}
	before, after := stateOf(c.Old()), stateOf(c.New())
	s.note("%s calls %s for %s, retry %d, on version %s: %s → %s", o.name, id, c.Reason(), c.Retry(), c.Body().ResourceVersion(), before, after)
	s.calls[id]++
	if string(c.UID()) != s.uid {
		return s.calls[id], true // an earlier object of the name
	}
	s.judgeCall(id, c)
	switch {
	case id == "parent" || !s.tiles(c):
	case id == "resumed" || strings.HasPrefix(id, "parent/"):
		s.ledger.Repeat(id, before, after)
	default:
		s.ledger.Call(id, before, after)
	}
	return s.calls[id], true
}

// ended notes that a handler has ended, with a result or not.
func (s *subject) ended(o *stormOperator, id string, c *kopf.Change, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case o.dead.Load() || string(c.UID()) != s.uid:
		return
	case c.Reason() == kopf.ReasonDelete:
		s.said[id] = false
	case s.tiles(c):
		s.ledger.End(id, stateOf(c.New()))
		s.results[id] = result
	}
	s.note("%s has ended: %s", id, result)
}

// forget notes that the operator has died. The subject is locked.
func (s *subject) forget() {
	s.ledger.Forget()
	s.late = nil
	clear(s.results)
	for id, recorded := range s.said {
		if !recorded {
			delete(s.said, id)
		}
	}
}

// answered records the response to a write. The subject is locked.
func (s *subject) answered(w *write, code int, content []byte) {
	if code >= 300 {
		s.note("#%d is refused with %d: %.300s", w.number, code, content)
		return
	}
	after, err := newState(content)
	if err != nil {
		s.breach("the answer to #%d cannot be read: %v", w.number, err)
		return
	}
	s.note("#%d is committed as version %s", w.number, after.body.ResourceVersion())
	s.committed = after
	if now := foreign(after.body); now != s.others {
		s.breach("#%d has changed what others have written: %s instead of %s", w.number, now, s.others)
	}
	if err := after.inherited(); err != nil {
		s.breach("#%d: %v", w.number, err)
	}
	if after.released() && !s.released {
		s.released = true
		s.judgeRelease()
	}
	if w.target() == "main" && bytes.Contains(w.body(), []byte(ourPrefix)) {
		s.recorded(after)
	}
}

// recorded notes that the attempts of handlers are stored: only after their results.
func (s *subject) recorded(after state) {
	if !s.deleting {
		s.ledger.Record()
	}
	for id, result := range s.results {
		stored := after.result(id)
		if result != "" && !s.deleting && stored != result {
			s.breach("the success of %s is recorded, and its result is %q instead of %q", id, stored, result)
		}
	}
	clear(s.results)
	for id := range s.said {
		s.said[id] = true
	}
}

// send sends a write. The subject is locked.
func (s *subject) send(w *write) (*http.Response, error) {
	answer, content, err := w.send()
	if err == nil && !w.dry() {
		s.answered(w, answer.StatusCode, content)
	}
	return answer, err
}

// stateFrom returns the state of a decoded object.
func stateFrom(obj *unstructured.Unstructured) (state, error) {
	content, err := json.Marshal(obj)
	if err != nil {
		return state{}, err
	}
	return newState(content)
}

// text returns the entire object.
func (s state) text() string {
	text, _ := json.MarshalIndent(s.body.Raw(), "", "  ")
	return string(text)
}

// now returns the object from the API server.
func (s *subject) now() (state, error) {
	obj, err := cluster.Current(s.object)()
	if apierrors.IsNotFound(err) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	return stateFrom(obj)
}

// result returns the result of a handler in a storm.
func (s state) result(id string) string {
	result, _ := statusOf(s.body.Raw())[id].(map[string]any)
	text, _ := result["text"].(string)
	return text
}
