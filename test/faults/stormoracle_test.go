package faults

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// tiles reports whether a call belongs to the line of changes: resuming sees no change, and the
// deletion ends the line.
func (s *subject) tiles(c *kopf.Change) bool {
	return !s.deleting && (c.Reason() == kopf.ReasonCreate || c.Reason() == kopf.ReasonUpdate)
}

// judgeCall checks the call of a handler against what is committed.
func (s *subject) judgeCall(id string, c *kopf.Change) {
	record := s.committed.record(id)
	same := record != nil && record.Purpose == c.Reason()
	switch {
	case !contains(c.Body().Finalizers(), ourFinalizer):
		s.breach("%s was called without the finalizer", id)
	case s.committed.released():
		s.breach("%s was called for an object that was released", id)
	case same && record.Finished():
		s.breach("%s was called after its success or failure was recorded", id)
	case same && record.Retries > c.Retry():
		s.breach("%s was called for an attempt that was recorded", id)
	}
}

// judgeRelease checks that all handlers of the deletion have ended before the finalizer goes.
func (s *subject) judgeRelease() {
	for _, id := range farewells {
		if _, ended := s.said[id]; !ended {
			s.breach("the object was released before %s has ended", id)
		}
	}
}

// rested returns an error unless the object needs no more work or must be deleted.
func (s *subject) rested() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	switch {
	case err != nil || s.deleting:
	case now.body == nil:
		err = fmt.Errorf("the object is gone, and no client has deleted it")
	case !now.handled():
		err = fmt.Errorf("the base is not the last state, or something is left over: %v\n%s", now.leftovers(), now.text())
	}
	return err
}

// judgeRest checks an object that needs no more work: the handlers have handled its last state.
func (s *subject) judgeRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleting {
		return // the line of changes has ended
	}
	now, err := s.now()
	if err != nil || now.body == nil {
		s.breach("it cannot be read: %v", err)
		return
	}
	if written := foreign(now.body); written != s.others {
		s.breach("what others have written is lost: %s instead of %s", written, s.others)
	}
	s.ledger.Finish(lastOf(now.body))
}

// gone returns an error unless the object does not exist anymore.
func (s *subject) gone() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	if err == nil && now.body != nil {
		err = fmt.Errorf("the object is still there:\n%s", now.text())
	}
	return err
}

// judgeLedger checks that the changes that the handlers have seen lie end to end.
func (s *subject) judgeLedger() {
	for _, problem := range s.ledger.Problems() {
		s.breach("%s", problem)
	}
}

// judgeEnd checks the whole life of the object after its end.
func (s *subject) judgeEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mourned && !s.released {
		s.breach("the object was held, and the operator has not released it")
	}
	s.judgeLedger()
	calls := 0
	for _, n := range s.calls {
		calls += n
	}
	if limit := 20 + 4*(calls+s.changes+s.faults); s.writes > limit {
		s.breach("%d writes for %d calls, %d changes, and %d faults", s.writes, calls, s.changes, s.faults)
	}
}

// foreign returns what others have written.
func foreign(body *object.Body) string {
	annotations := map[string]string{}
	for key, value := range body.Annotations() {
		if !strings.HasPrefix(key, ourPrefix) {
			annotations[key] = value
		}
	}
	finalizers := []string{}
	for _, finalizer := range body.Finalizers() {
		if finalizer != ourFinalizer {
			finalizers = append(finalizers, finalizer)
		}
	}
	return textOf(map[string]any{
		"spec": body.Raw()["spec"], "labels": body.Labels(), "annotations": annotations, "finalizers": finalizers,
	})
}

// stateOf returns what a handler sees as text: the essence, or its field.
func stateOf(v object.Value) string {
	value := v.Any()
	if value == nil {
		return ""
	}
	if essence, isMapping := value.(map[string]any); isMapping {
		labels, _ := object.Lookup(essence, object.Path{"metadata", "labels"})
		return textOf(map[string]any{"spec": essence["spec"], "labels": labels})
	}
	return textOf(value)
}

// lastOf returns the state that each handler must have handled.
func lastOf(body *object.Body) map[string]string {
	spec, _ := body.Raw()["spec"].(map[string]any)
	a, b := spec["a"], spec["b"]
	all := stateOf(object.NewValue(map[string]any{"spec": spec, "metadata": body.Raw()["metadata"]}))
	last := map[string]string{
		"field_a/spec.a": textOf(a), "field_b/spec.b": textOf(b),
		"all": all, "updated": all, "resumed": all, "parent/x": all, "parent/y": all, "parent/field/spec.a": textOf(a),
	}
	if body.Labels()["on"] == "yes" {
		last["labeled"] = all
	}
	return last
}

func textOf(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}
