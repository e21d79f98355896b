package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
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
	mu sync.Mutex
	life
	familyLife
	// others is what other clients have written.
	others string
	late   *stormWrite // to be committed before the next one
	policy policy
	// unread is closed when the operator unreadBy reads the object with the uid unreadUID.
	unread    chan struct{}
	unreadBy  *stormOperator
	unreadUID string
	// hiddenFrom is the operator whose next list does not have the object.
	hiddenFrom *stormOperator
	// absent is set while another client has not created the object again.
	absent bool
	// buried is the uid of the object that was deleted by force last.
	buried string
	// handledBy is the operator that handles the object, with shards.
	handledBy *stormOperator
	// writer is the operator that has written last.
	writer *stormOperator
	views  map[*stormOperator]*view
	// company counts running daemons, and inside has the running calls of other handlers.
	company map[companion]int
	inside  map[*stormOperator]insider

	// writes, reads, events, calls, changes, faults, and replacements count what has happened.
	writes, reads, events, changes, faults, replacements int
	// writesBefore is the number of writes before the last change.
	writesBefore int
	calls        map[string]int
}

// life is what is known about the current object of the name.
type life struct {
	uid       string
	born      uint64 // the version of its creation
	committed state
	ledger    *tilingtest.Ledger
	// ended contains the calls that have ended, and that are not recorded yet.
	ended map[string]ending
	// rejects contains the entries of edits that the API server rejects, and banned those that a
	// policy has rejected for a while.
	rejects, banned map[string]bool
	// asked are the requests of people, and loose the handlers that they are about.
	asked map[request.Verb]string
	loose map[string]bool
	// successes counts those that are recorded, and heard those that are said.
	successes, heard map[teller]int
	// said contains the handlers of the deletion that have ended: true if it is recorded. failed
	// contains those that have failed.
	said, failed map[string]bool
	// resumed contains the operators that have resumed the object.
	resumed map[*stormOperator]bool
	// deleting is set when others have deleted the object; mourned if it had our finalizer
	// then; released when that was removed.
	deleting, mourned, released bool
	// abandoned is set if others have requested to release the object despite a failure.
	abandoned bool
	// made are the runs that have ended.
	made map[runOf]bool
	// damaged is set if others have made a record unreadable.
	damaged bool
}

// ending is the end of a call.
type ending struct {
	reason kopf.Reason
	result string // "" without one
	entry  string // in the journals; "" without one
}

// tiled are the handlers that must see every change since the creation.
var tiled = []string{"field_a/spec.a", "field_b/spec.b", "all", "parent/x", "parent/y", "parent/field/spec.a"}

func newSubject(s *storm, name string) *subject {
	o := &subject{
		storm: s, name: name, calls: map[string]int{}, views: map[*stormOperator]*view{},
		company: map[companion]int{}, inside: map[*stormOperator]insider{},
		object: testenv.NewObject("KopfExample", s.namespace, name, map[string]any{"a": int64(0), "b": int64(0)}),
	}
	if s.served {
		_ = unstructured.SetNestedStringSlice(o.object.Object, []string{}, "spec", journal)
	}
	if s.ordered && !s.statusRecords {
		o.object.SetAnnotations(recordOfLastRun())
	}
	o.begin()
	return o
}

// begin forgets everything about earlier objects of the name.
func (s *subject) begin() {
	if s.ledger != nil {
		s.judgeLedger()
	}
	s.life = life{
		successes: map[teller]int{}, heard: map[teller]int{},
		ledger: tilingtest.New(tiled...), ended: map[string]ending{}, rejects: map[string]bool{}, banned: map[string]bool{},
		asked: map[request.Verb]string{}, loose: map[string]bool{}, said: map[string]bool{}, failed: map[string]bool{}, resumed: map[*stormOperator]bool{}, made: map[runOf]bool{},
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
func (s *subject) called(o *stormOperator, id string, c change) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.dead.Load() {
		return 0, false
	}
	before, after := stateOf(c.Old()), stateOf(c.New())
	s.note("%s calls %s for %s, retry %d, on version %s: %s → %s", o.name, id, c.Reason(), c.Retry(), c.Body().ResourceVersion(), before, after)
	s.calls[id]++
	s.noteRead(o)
	s.handOver(o)
	v := s.view(o)
	v.asked = string(c.UID())
	if v.asked == v.gone {
		s.breach("%s calls %s for an object that it knows to be gone", o.name, id)
	}
	if string(c.UID()) != s.uid {
		return s.calls[id], true // an earlier object of the name
	}
	if o.paused.Load() {
		s.breach("%s was called by %s, which is paused", id, o.name)
	}
	if !o.leads.Load() {
		s.breach("%s was called by %s, which does not lead", id, o.name)
	}
	s.judgeCall(o, id, c)
	s.judgeTurn(id, c)
	s.judgeArguments(id, c)
	if s.damaged {
		s.ledger.Loosen(id) // outcomes that are not stored yet can be lost with the damage
	}
	switch {
	case id == "parent" || id == "timed" || isInSequence(id) || s.loose[id] || !s.tiles(c): // no call may show the end of the time, or that it was skipped
	case id == "resumed" || strings.HasPrefix(id, "parent/"):
		s.ledger.Repeat(id, before, after)
	default:
		s.ledger.Call(id, before, after)
	}
	return s.calls[id], true
}

// end notes that a handler has ended. The subject is locked.
func (s *subject) end(o *stormOperator, id string, c change, e ending) {
	if o.dead.Load() || string(c.UID()) != s.uid {
		return
	}
	s.resumed[o] = s.resumed[o] || id == "resumed" && c.Reason() != kopf.ReasonDelete
	switch {
	case c.Reason() == kopf.ReasonDelete:
		s.said[id], s.failed[id], s.ended[id] = false, e.result == "", e
	case s.tiles(c):
		s.ledger.End(id, stateOf(c.New()))
		if isLitter(s.committed.record(id)) { // since the call began: the end does not count
			s.ledger.Loosen(id)
		}
		s.ended[id] = e
	}
	s.note("%s has ended: %s%s", id, e.result, e.entry)
}

// forget notes that the operator has died. The subject is locked.
func (s *subject) forget() {
	if s.storm.statusRecords {
		for id := range s.ended {
			if s.committed.hasPosition(id) { // its record would have followed, and is not needed
				s.ledger.Loosen(id)
			}
		}
	}
	s.ledger.Forget()
	s.late = nil
	clear(s.ended)
	clear(s.successes)
	clear(s.resumed)
	s.forgetDeletion()
}

// forgetDeletion forgets what has been done for the deletion and was not stored. The subject is locked.
func (s *subject) forgetDeletion() {
	for id, recorded := range s.said {
		if !recorded {
			delete(s.said, id)
			delete(s.ended, id)
		}
	}
}

// answered records the response to a write. The subject is locked.
func (s *subject) answered(w *stormWrite, code int, content []byte) {
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
	before := s.committed
	w.uid = string(after.body.UID())
	w.after, s.committed, s.writer = number(after.body.ResourceVersion()), after, w.stormOperator
	s.judgeWrite(w, before, after)
	if after.released() && !s.released {
		s.released = true
		if s.mourned { // otherwise, it never had our finalizer
			s.judgeRelease(w, after)
		}
	}
	if s.storesRecords(w, before, after) {
		s.recorded(w, after)
	}
}

// storesRecords reports whether a write stores the outcomes of handlers. With records in the
// status, another write of the status stores them, but not the end of a cycle; and the API server
// drops them if an operator tries to write them without the subresource.
func (s *subject) storesRecords(w *stormWrite, before, after state) bool {
	if s.storm.statusRecords {
		return !reflect.DeepEqual(statusOf(before.body.Raw())["kopf"], statusOf(after.body.Raw())["kopf"]) || !equal(before.base(), after.base()) || after.released()
	}
	return w.target() == "main" && (len(w.records()) > 0 || after.released() && !before.released())
}

// records returns the annotations of the operator that a write changes, except for the places of children and the last run.
func (w *write) records() map[string]any {
	var patch struct {
		Metadata struct{ Annotations map[string]any }
	}
	_ = json.Unmarshal(w.body(), &patch)
	maps.DeleteFunc(patch.Metadata.Annotations, func(key string, _ any) bool {
		return !strings.HasPrefix(key, ourPrefix) || key == convergence.PlacesAnnotation || key == runKey
	})
	return patch.Metadata.Annotations
}

// addsRecords reports whether a write does more than to remove records, or to count the attempts of handlers of
// children.
func (w *write) addsRecords() bool {
	for _, record := range w.records() {
		if text, _ := record.(string); record != nil && !strings.Contains(text, `"purpose":"child"`) && !strings.Contains(text, `"purpose":"disturbance"`) {
			return true
		}
	}
	return false
}

// recorded notes that the attempts of handlers are stored: only after their edits. A write that arrives late contains
// only those that had ended when it was sent.
func (s *subject) recorded(w *stormWrite, after state) {
	isIn := func(id string) bool { return w.sent == nil || w.sent.has(id) }
	switch {
	case s.deleting: // the line of changes has ended
	case w.sent == nil:
		s.ledger.Record()
	default:
		s.ledger.RecordEnds(isIn)
		s.ledger.Open()
	}
	for id, e := range s.ended {
		if !isIn(id) {
			continue
		}
		if s.storm.strict() && !s.damaged {
			s.judgeEdit(w, id, e, after)
		}
		s.countSuccess(w.stormOperator, id, e)
		delete(s.ended, id)
	}
	for id := range s.said {
		s.said[id] = s.said[id] || isIn(id)
	}
}

// ends are the handlers that had ended when a write was sent.
type ends map[string]bool

func (e ends) has(id string) bool { return e[id] }

// endsSoFar returns the handlers that have ended. The subject is locked.
func (s *subject) endsSoFar() ends {
	all := ends{}
	for id := range s.ended {
		all[id] = true
	}
	for id := range s.said {
		all[id] = true
	}
	return all
}

// send sends a write. The subject is locked.
func (s *subject) send(w *stormWrite) (*http.Response, error) {
	answer, content, err := w.write.send()
	if err == nil && !w.dry() {
		s.answered(w, answer.StatusCode, content)
	}
	return answer, err
}

// now returns the object from the API server.
func (s *subject) now() (state, error) {
	obj, err := s.storm.cluster.Current(s.object)()
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
