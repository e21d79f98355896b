package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/storage"
)

// attempt is one call of a handler, from its start to its end.
type attempt struct {
	*call

	start  int // its place in the history of the object
	number uint64
	at     time.Time
	end    *call // nil: it was interrupted
	// stored is the place of the version that has the final outcome, or -1.
	stored int
}

func (a *attempt) String() string {
	return fmt.Sprintf("process %d, %s of %s, retry %d, step %d", a.Process, a.Handler, a.Reason, a.Retry, a.Step)
}

// failed reports whether the attempt has failed temporarily, or has no end.
func (a *attempt) failed() bool { return a.end == nil || !a.end.isFinal() }

// judge finds in a history what must not happen.
type judge struct {
	events []event
	// kopf has the numbers of the processes of Kopf, which has fewer guarantees.
	kopf map[int]bool
	// former has also those of builds that know neither the order of handlers nor schedules.
	former map[int]bool
	broken []string
	known  map[string]int // repetitions that have an excuse
}

func newJudge(events []event, kopf, former map[int]bool) *judge {
	return &judge{events: events, kopf: kopf, former: former, known: map[string]int{}}
}

// isWithKopf reports whether Kopf has taken part.
func (j *judge) isWithKopf() bool { return len(j.kopf) > 0 }

// judge returns what is wrong, one a line.
func (j *judge) judge() []string {
	objects := map[string][]event{}
	for _, e := range j.events {
		if strings.HasPrefix(e.note, "The watch") && e.process == 0 {
			j.broken = append(j.broken, e.note)
		}
		if e.call != nil && e.call.Phase != "ready" || e.version != nil {
			objects[e.object] = append(objects[e.object], e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		j.judgeObject(name, objects[name])
	}
	return j.broken
}

// subject is one object in the judgment.
type subject struct {
	*judge

	name     string
	events   []event
	versions map[uint64]*version
	last     *version
	attempts map[string][]*attempt // by the ids of the handlers
}

func (s *subject) breach(format string, args ...any) {
	s.broken = append(s.broken, s.name+": "+fmt.Sprintf(format, args...))
}

func (j *judge) judgeObject(name string, events []event) {
	s := &subject{judge: j, name: name, events: events, versions: map[uint64]*version{}, attempts: map[string][]*attempt{}}
	for i, e := range events {
		switch {
		case e.call != nil && e.call.Handler == "backup":
			// judgeRuns is about it.
		case e.version != nil:
			s.versions[e.version.number] = e.version
			s.last = e.version
			for _, text := range e.version.broken {
				s.breach("version %d cannot be read: %s", e.version.number, text)
			}
		case e.call.Phase == "start":
			a := &attempt{call: e.call, start: i, at: e.at, stored: -1}
			_, _ = fmt.Sscan(e.call.Version, &a.number)
			s.attempts[e.call.Handler] = append(s.attempts[e.call.Handler], a)
		default:
			s.finish(e.call)
		}
	}
	if s.last == nil {
		s.breach("no version has been seen")
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.attempts)) {
		all := s.attempts[id]
		for i, a := range all {
			s.findStored(a, all[i+1:])
		}
		for i, a := range all {
			if s.judgeStart(a) {
				s.judgeRepetition(a, all[:i])
			}
			s.judgeTurn(a)
		}
		s.judgeRetries(all)
		if !s.isWithKopf() {
			s.judgeDifferences(id, all)
		}
	}
	s.judgeSkips()
	s.judgeRuns()
	s.judgeFinalizer()
	s.judgeEnd()
}

// finish notes the end of an attempt.
func (s *subject) finish(end *call) {
	all := s.attempts[end.Handler]
	for _, a := range slices.Backward(all) {
		if a.Process == end.Process && a.end == nil {
			a.end = end
			return
		}
	}
	s.breach("there is an end without a start: %s", end)
}

// findStored finds the version that has the outcome of an attempt: its record, or the end of its
// cycle. It comes before the next attempt, or else it has the outcome of that.
func (s *subject) findStored(a *attempt, later []*attempt) {
	if a.failed() {
		return
	}
	before := s.versions[a.number]
	for i := a.start + 1; i < len(s.events); i++ {
		v := s.events[i].version
		if v == nil {
			continue
		}
		if v.number > a.number && hasEnded(before, v, a.Handler) {
			if len(later) == 0 || i < later[0].start || v.number <= later[0].number {
				a.stored = i
			}
			return
		}
		if v.number > a.number {
			before = v
		}
	}
}

// hasEnded reports whether a version has the end of a handler, or the end of its cycle.
func hasEnded(before, v *version, id string) bool {
	if v.gone || v.deleting && !v.held {
		return true
	}
	if r := v.record(id); r != nil {
		return r.Finished()
	}
	return before != nil && number(before.base) != number(v.base)
}

// clockSlack is how much earlier than the stored time an attempt may start: times are rounded.
const clockSlack = 5 * time.Millisecond

// judgeStart compares an attempt with the record in the version that its handler has seen. It returns
// false if the attempt must not be there.
func (s *subject) judgeStart(a *attempt) bool {
	v := s.versions[a.number]
	if v == nil {
		s.breach("%s: the watch has not shown version %d", a, a.number)
		return true
	}
	r := v.record(a.Handler)
	switch {
	case r == nil:
		if a.Retry != 0 {
			s.breach("%s: there is no record of attempts in version %d", a, a.number)
		}
	case a.Handler == "resumed" && s.isFirst(a):
		// Another process resumes again.
	case r.Finished():
		s.breach("%s: its end is recorded in version %d", a, a.number)
		return false
	case string(r.Purpose) == a.Reason && a.Retry != r.Retries:
		s.breach("%s: version %d has %d attempts", a, a.number, r.Retries)
	case a.at.Add(clockSlack).Before(r.Delayed):
		s.breach("%s: it starts %s too early", a, r.Delayed.Sub(a.at))
	}
	return true
}

// isFirst reports whether an attempt is the first one of its handler in its process.
func (s *subject) isFirst(a *attempt) bool {
	for _, other := range s.attempts[a.Handler] {
		if other.Process == a.Process {
			return other == a
		}
	}
	return false
}

// judgeRepetition finds attempts for a change that the handler has ended for.
func (s *subject) judgeRepetition(a *attempt, earlier []*attempt) {
	if s.attempts[a.Handler+"/x"] != nil {
		return // a parent is called again for its sub-handlers, which are judged themselves
	}
	for i, other := range earlier {
		if other.stored < 0 || other.Step != a.Step || other.Reason != a.Reason || a.Handler == "resumed" && other.Process != a.Process {
			continue
		}
		v := s.events[other.stored].version
		if other.stored > a.start && v.number > a.number {
			continue
		}
		if isInSequence(a.Handler) && number(a.Old) != number(other.Old) {
			return // in the next cycle, because the others of its sequence are called
		}
		if why := s.excuse(a, other, earlier[i+1:]); why != "" {
			s.known[why]++
		} else {
			s.breach("%s: it is called again, although version %d has its end in process %d", a, v.number, other.Process)
		}
		return
	}
}

// These are the repetitions that are known.
const (
	// The end of a handler that is more than one state ahead of the base is only in the annotation of
	// the open cycle. Kopf does not read it, and calls the handler once more.
	aheadOfKopf = "ahead of what Kopf knows"
	// When a deletion ends another cycle, Kopf removes all records, and stores only those that have
	// changed: it forgets handlers of the deletion that have ended before. That does no harm at the
	// beginning of the deletion. But Kopf stores records with a key that it does not know again,
	// without the key, and so removes all records once more, later.
	forgottenByKopf = "forgotten by Kopf in a deletion"
	// Kopf removes the finalizer after the records. If it is killed in between, all begins anew.
	keptByKopf = "not released by a killed Kopf"
)

// excuse returns why an attempt is made although another one has ended for the same change, or "" if it
// must not be made. There are some attempts between them.
func (s *subject) excuse(a, ended *attempt, between []*attempt) string {
	stored := s.events[ended.stored].version
	if !s.isWithKopf() {
		return ""
	}
	byKopf := s.kopf[a.Process] || slices.ContainsFunc(between, func(one *attempt) bool { return s.kopf[one.Process] })
	record := stored.record(a.Handler)
	if stored.cycle != nil && (record == nil || !record.Finished()) && byKopf {
		if _, isAhead := stored.cycle.At[a.Handler]; isAhead {
			return aheadOfKopf
		}
	}
	if a.Reason != "delete" {
		return ""
	}
	by, left := s.forgotBy(ended)
	isOfEndedCycle := func(r *storage.Record) bool { return r.Purpose != cause.Delete }
	if (byKopf || s.kopf[by]) && slices.ContainsFunc(slices.Collect(maps.Values(stored.records)), isOfEndedCycle) {
		return forgottenByKopf
	}
	if s.kopf[by] && left == 0 {
		return keptByKopf
	}
	return ""
}

// forgotBy returns the process that has removed the record of an attempt that has ended, or ended its cycle, and how many
// records it has left.
func (s *subject) forgotBy(ended *attempt) (process, left int) {
	for _, e := range s.events[ended.stored:] {
		if e.version != nil && e.version.record(ended.Handler) == nil {
			return e.process, len(e.version.records)
		}
	}
	return 0, 0
}

// judgeRetries finds handlers that have failed temporarily, and are not called again.
func (s *subject) judgeRetries(all []*attempt) {
	last := all[len(all)-1]
	switch {
	case !last.failed():
	case s.last.gone && !isDeletion(last.Handler):
		// The deletion has ended its cycle.
	case s.isWithKopf() && last.Handler == "resumed":
		// Kopf does not resume objects whose creation has not ended.
	case s.former[last.Process] && s.mayBeSkipped(last.Handler, len(s.events)):
		// It was called before its turn, and nothing is stored about that.
	default:
		s.breach("%s: it has failed, and is not called again", last)
	}
}

func isDeletion(id string) bool { return strings.HasPrefix(id, "delete_") }

// judgeDifferences expects that the differences that a handler has handled lie end to end, up to the
// last state.
func (s *subject) judgeDifferences(id string, all []*attempt) {
	if isDeletion(id) || id == "resumed" || id == "parent" {
		return // a parent begins where the oldest of its sub-handlers is
	}
	var previous *attempt
	for _, a := range all {
		if a.Reason == "delete" {
			s.breach("%s: it is called for the deletion", a)
		}
		isRepeated := isInSequence(id) && previous != nil && previous.New != nil && a.Old != nil && *a.Old < *previous.New
		if previous != nil && number(previous.New) != number(a.Old) && !isRepeated && !s.mayBeSkipped(id, a.start) {
			s.breach("%s: it is called with the change from %s to %s after that to %s", a, number(a.Old), number(a.New), number(previous.New))
		}
		if a.stored >= 0 {
			previous = a
		}
	}
	last := s.last.step
	if id == "field/spec.a" {
		last = s.last.a
	}
	if !s.last.gone && !strings.HasPrefix(id, "create_") && (previous == nil || previous.New == nil || *previous.New != last) &&
		!s.mayBeSkipped(id, len(s.events)) {
		s.breach("%s has not handled the last state, %d", id, last)
	}
}

// judgeEnd judges what is left at the end.
func (s *subject) judgeEnd() {
	if s.last.gone {
		s.judgeRelease()
		return
	}
	if s.last.deleting {
		s.breach("its deletion has not ended")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.last.records)) {
		s.breach("the record of %s is left", name)
	}
	if s.last.base == nil || *s.last.base != s.last.step {
		s.breach("the last handled state is of step %s, not %d", number(s.last.base), s.last.step)
	}
	if s.last.cycle != nil && !s.isFinishedByKopf() {
		s.breach("the annotation of the open cycle is left")
	}
	if !s.last.held {
		s.breach("the finalizer is missing")
	}
	s.judgeResults()
}

// judgeRelease expects that the handlers of a deletion have ended before the object is gone. An API
// server deletes an object at once if the finalizer is added while it handles the request.
func (s *subject) judgeRelease() {
	held := slices.ContainsFunc(s.events, func(e event) bool { return e.version != nil && e.version.held && e.version.deleting })
	for _, id := range []string{"delete_one", "delete_two"} {
		all := s.attempts[id]
		if held && (len(all) == 0 || all[len(all)-1].failed()) {
			s.breach("it is gone before %s has ended", id)
		}
	}
}

// judgeFinalizer expects that the finalizer is not removed before the deletion.
func (s *subject) judgeFinalizer() {
	held := false
	for _, e := range s.events {
		if v := e.version; v != nil && !v.gone {
			if held && !v.held && !v.deleting {
				s.breach("version %d has lost the finalizer", v.number)
			}
			held = v.held
		}
	}
}

// isFinishedByKopf reports whether a process of Kopf has ended the last cycle. It leaves the
// annotation of the open cycle behind, as pkg/storage/formats.md says.
func (s *subject) isFinishedByKopf() bool {
	finished := false
	var before *version
	for _, e := range s.events {
		if e.version == nil {
			continue
		}
		if before != nil && number(before.base) != number(e.version.base) {
			finished = s.kopf[e.process]
		}
		before = e.version
	}
	return finished
}

// judgeResults expects the results of handlers in the status, and nothing else. Kopf stores the
// records first: if it is killed before it stores the results, they are lost.
func (s *subject) judgeResults() {
	for _, key := range slices.Sorted(maps.Keys(s.last.status)) {
		if s.attempts[key] == nil {
			s.breach("the status has %s", key)
		}
	}
	for id, all := range s.attempts {
		var want any
		for _, a := range slices.Backward(all) {
			if !a.failed() {
				if a.end.Outcome == "success" && a.stored >= 0 && id != "resumed" && !s.kopf[a.Process] {
					want = a.Step
				}
				break
			}
		}
		result, _ := s.last.status[id].(map[string]any)
		if want != nil && result["step"] != want {
			s.breach("the result of %s is %v, not of step %v", id, s.last.status[id], want)
		}
	}
}
