package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// tiles reports whether a call belongs to the line of changes: resuming sees no change, and the
// deletion ends the line.
func (s *subject) tiles(c change) bool {
	return !s.deleting && (c.Reason() == kopf.ReasonCreate || c.Reason() == kopf.ReasonUpdate)
}

// judgeCall checks the call of a handler against what is committed.
func (s *subject) judgeCall(o *stormOperator, id string, c change) {
	record := s.committed.record(id)
	same := record != nil && record.Purpose == c.Reason() && !(s.storm.statusRecords && s.committed.isLeftOver(record))
	switch {
	case !contains(c.Body().Finalizers(), ourFinalizer) && s.needsFinalizer(c.Body()):
		s.breach("%s was called without the finalizer", id)
	case id == "limited" && c.Retry() >= o.attempts():
		s.breach("%s was called %d times, but at most %d times are allowed", id, c.Retry()+1, o.attempts())
	case isSuspended(c.Body()):
		s.breach("%s was called for a suspended object", id)
	case !s.storm.strict() || s.loose[id] || s.damaged:
		return // another operator may have written meanwhile, or people want another call
	case s.released:
		s.breach("%s was called for an object that was released", id)
	case c.Reason() == kopf.ReasonResume && s.resumed[o] && !s.storm.requests:
		s.breach("%s resumes the object again", o.name)
	case c.Reason() == kopf.ReasonDelete && s.hasSaid(id):
		s.breach("%s was called again for the deletion", id)
	case same && record.Finished():
		s.breach("%s was called after its success or failure was recorded", id)
	case same && record.Retries > c.Retry():
		s.breach("%s was called for an attempt that was recorded", id)
	case same && time.Until(record.Delayed) > time.Millisecond:
		s.breach("%s was called %s too early", id, time.Until(record.Delayed))
	}
}

// judgeArguments checks that the new state is that of the object.
func (s *subject) judgeArguments(id string, c change) {
	if id != "all" && id != "updated" || !s.tiles(c) {
		return
	}
	if body := stateOf(object.NewValue(diffBase.Build(c.Body(), nil))); body != stateOf(c.New()) {
		s.breach("%s was called for the new state %s, and the object is %s", id, stateOf(c.New()), body)
	}
}

// hasSaid reports whether a handler of the deletion has ended, and the operator knows it.
func (s *subject) hasSaid(id string) bool {
	_, said := s.said[id]
	return said
}

// judgeWrite checks a write by what it has changed.
func (s *subject) judgeWrite(w *stormWrite, before, after state) {
	if now := foreign(after.body); now != s.others {
		s.breach("#%d has changed what others have written: %s instead of %s", w.number, now, s.others)
	}
	if err := after.inherited(); err != nil {
		s.breach("#%d: %v", w.number, err)
	}
	if before.body == nil || before.body.UID() != after.body.UID() {
		return
	}
	s.judgeJournals(w.write, before, after)
	s.judgeRun(w, before, after)
	switch {
	case before.body.ResourceVersion() == after.body.ResourceVersion() && !after.released() && !w.tries():
		s.breach("#%d has changed nothing", w.number)
	case before.released() && w.addsRecords():
		s.breach("#%d writes records to an object that was released", w.number)
	case equal(before.base(), after.base()) && !s.storm.statusRecords:
		s.judgeRecords(w, before, after)
	}
}

// tries reports whether a write has only the status, and goes to the main part: it finds out whether
// the status is a subresource.
func (w *stormWrite) tries() bool {
	var patch map[string]any
	return w.isMain() && json.Unmarshal(w.body(), &patch) == nil && len(patch) == 2 && patch["status"] != nil
}

// judgeRecords checks that the end of a handler stays as it is recorded.
func (s *subject) judgeRecords(w *stormWrite, before, after state) {
	for id := range s.calls {
		was, is := before.record(id), after.record(id)
		if isGivenUp := id == "holder" && s.abandoned; !s.loose[id] && !isGivenUp && was != nil && is != nil && was.Finished() && was.Purpose == is.Purpose && was.Cycle == is.Cycle && !was.Equal(is) {
			s.breach("#%d has changed the record of %s, which was final", w.number, id)
		}
	}
}

// judgeEdit checks that the edit of a handler is stored when its end is recorded.
func (s *subject) judgeEdit(w *stormWrite, id string, e ending, after state) {
	record, gone := after.record(id), after.released() && (len(after.body.Finalizers()) == 0 || !s.mourned)
	if record != nil && s.storm.statusRecords && after.isLeftOver(record) {
		record = nil
	}
	switch stored := after.result(id); {
	case gone, s.banned[e.entry], isLitter(record): // together with its results, for a while, or at all
	case s.rejects[e.entry]:
		if record != nil && record.Success && record.Retries > 0 { // otherwise, it is ahead of the next cycle
			s.breach("#%d records the success of %s, but the edit of %s was rejected", w.number, id, e.entry)
		}
	case e.result != "" && record != nil && record.Failure && record.Purpose == e.reason:
		s.breach("#%d records the failure of %s, which has succeeded", w.number, id)
	case e.result != "" && stored != e.result:
		s.breach("#%d records the success of %s, and its result is %q instead of %q", w.number, id, stored, e.result)
	case e.entry != "" && slices.ContainsFunc(s.storm.journals(), func(part string) bool { return !slices.Contains(after.journal(part), e.entry) }):
		s.breach("#%d records the end of %s, and its edit %s is not there", w.number, id, e.entry)
	}
}

// judgeRelease checks that everything has ended before the finalizer goes.
func (s *subject) judgeRelease(w *stormWrite, after state) {
	for _, id := range s.storm.farewells(after.body) {
		if _, ended := s.said[id]; !ended && s.storm.strict() {
			s.breach("#%d has released the object before %s has ended", w.number, id)
		}
		if id == "holder" && s.failed[id] && !s.abandoned && s.storm.strict() {
			s.breach("#%d has released the object, but %s has failed", w.number, id)
		}
	}
	for c, running := range s.company {
		if running > 0 && c.uid == s.uid && !c.by.dead.Load() && s.storm.strict() {
			s.breach("#%d has released the object while its daemon runs", w.number)
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
	case !equal(now.base(), diffBase.Build(now.body, nil)):
		err = fmt.Errorf("the base is not the last state:\n%s", now.text())
	case len(s.leftovers(now)) > 0:
		err = fmt.Errorf("something is left over: %v\n%s", s.leftovers(now), now.text())
	case now.isHeld() != s.needsFinalizer(now.body):
		err = fmt.Errorf("the finalizer is not as it must be:\n%s", now.text())
	default:
		err = errors.Join(s.isAccompanied(now), s.isHonored(now), s.isFamilyWhole(now), s.hasRun(now))
	}
	return err
}

// leftovers returns what the operator should have removed. Kopf does not know the open cycle, and
// leaves it behind. Only the record of a parent, which can be damaged, names the records of its
// sub-handlers. An unreadable record counts as absent. A rival can die while it works on an object that needs no other
// work.
func (s *subject) leftovers(now state) []string {
	isOfRival := func(record any) bool {
		fields, _ := record.(map[string]any)
		return s.storm.rivals && slices.Contains([]any{string(kopf.ReasonResume), "child", "disturbance"}, fields["purpose"])
	}
	keys := slices.DeleteFunc(now.leftovers(), func(key string) bool {
		record := map[string]any{}
		text, _ := now.body.Annotation(key)
		isDamaged := json.Unmarshal([]byte(text), &record) != nil || key == startedKey || strings.HasPrefix(key, ourPrefix+"parent.")
		return key == startedKey && (s.storm.kopf || s.storm.pauses) || s.damaged && isDamaged || isOfRival(record)
	})
	stored, _ := statusOf(now.body.Raw())["kopf"].(map[string]any)
	for kind, records := range stored {
		fields, _ := records.(map[string]any)
		for id, record := range fields {
			if !isEmpty(record) && !isOfRival(record) {
				keys = append(keys, "status.kopf."+kind+"."+id)
			}
		}
	}
	return keys
}

// isEmpty reports whether a mapping has only empty mappings.
func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	for _, field := range fields {
		ok = ok && isEmpty(field)
	}
	return ok
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
	s.ledger.Loosen(slices.Collect(maps.Keys(s.loose))...) // people have skipped them
	if s.damaged {
		s.ledger.Loosen(append(slices.Collect(maps.Keys(s.calls)), tiled...)...)
	}
	s.ledger.Finish(lastOf(now.body))
	s.judgeReports()
}

// gone returns an error unless the object does not exist anymore.
func (s *subject) gone() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.now()
	if err == nil && now.body != nil {
		s.abandon(now)
		err = fmt.Errorf("the object is still there:\n%s", now.text())
	} else if err == nil {
		err = s.isAbandoned()
	}
	return err
}

// judgeLedger checks that the changes that the handlers have seen lie end to end.
func (s *subject) judgeLedger() {
	if !s.storm.strict() {
		return // both operators call the handlers
	}
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
		if !strings.HasPrefix(key, ourPrefix) && key != markKey {
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
		"spec": withoutJournal(body.Raw()["spec"]), "labels": body.Labels(), "annotations": annotations, "finalizers": finalizers,
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

// withoutJournal returns what others have written to the spec.
func withoutJournal(spec any) map[string]any {
	fields, _ := spec.(map[string]any)
	fields = maps.Clone(fields)
	delete(fields, journal)
	return fields
}

// lastOf returns the state that each handler must have handled.
func lastOf(body *object.Body) map[string]string {
	spec := withoutJournal(body.Raw()["spec"])
	a, b := spec["a"], spec["b"]
	all := stateOf(object.NewValue(map[string]any{"spec": spec, "metadata": body.Raw()["metadata"]}))
	last := map[string]string{
		"field_a/spec.a": textOf(a), "field_b/spec.b": textOf(b),
		"all": all, "first": all, "updated": all, "resumed": all, "parent/x": all, "parent/y": all, "parent/field/spec.a": textOf(a),
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
