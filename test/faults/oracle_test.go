package faults

import (
	"slices"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// judgeStart checks the start of a handler against the committed state.
func (h *history) judgeStart(s start) {
	if h.scenario.holds && s.reason != kopf.ReasonDelete && !s.held {
		h.breach("%s was called before the finalizer was there", s.id)
	}
	// While an operator lives, it remembers its calls, whatever the outcome of its
	// writes.
	if slices.ContainsFunc(h.starts, s.repeats) {
		h.breach("%s was called again by the same operator for the same attempt", s.id)
	}
	if h.overlap {
		return // the latest commit of the other operator may not be known yet
	}
	record := h.committed.record(s.id)
	switch {
	case h.committed.body != nil && string(h.committed.body.UID()) != s.uid:
		return // another object of the same name
	case h.committed.released():
		h.breach("%s was called for an object that was released", s.id)
	case record != nil && record.Purpose == s.reason && record.Finished():
		h.breach("%s was called after its success or failure was recorded", s.id)
	case record != nil && record.Purpose == s.reason && record.Retries > s.retry:
		h.breach("%s was called for an attempt that was recorded", s.id)
	case !equal(h.committed.base(), s.base):
		h.breach("%s was called in a cycle that has ended", s.id)
	}
}

// repeats reports whether both starts belong to the same attempt of one operator.
func (s start) repeats(other start) bool {
	return s.operator == other.operator && s.id == other.id && s.uid == other.uid &&
		s.reason == other.reason && s.retry == other.retry && equal(s.base, other.base)
}

// judgeCommit checks a committed write against the previous version.
func (h *history) judgeCommit(operator string, after state) {
	before := h.committed
	if after.isBefore(before) {
		h.bases = append(h.bases, after.base())
		return
	}
	if before.body != nil && before.body.UID() != after.body.UID() {
		before, h.bases = state{}, nil
	}
	cycleEnded := !equal(before.base(), after.base())
	if cycleEnded {
		h.judgeBase(operator, after)
	}
	for _, id := range h.scenario.ids {
		was, is := before.record(id), after.record(id)
		if !cycleEnded && was != nil && is != nil && was.Finished() && was.Purpose == is.Purpose && !was.Equal(is) {
			h.breach("%s has changed the record of %s that was final", operator, id)
		}
		if is != nil && is.Success {
			h.judgeResult(id, after)
		}
	}
	switch {
	case cycleEnded && before.base() == nil:
		h.judgeResults(h.scenario.results.create, after)
	case cycleEnded:
		h.judgeResults(h.scenario.results.update, after)
	case after.released() && !before.released() && len(after.body.Finalizers()) > 0:
		h.judgeResults(h.scenario.results.delete, after)
	}
	if err := h.others.missing(after); err != nil {
		h.breach("after a write of %s: %v", operator, err)
	}
}

// judgeBase checks that a handled state is not handled again.
func (h *history) judgeBase(operator string, after state) {
	known := func(base object.Essence) bool { return equal(base, after.base()) }
	if after.base() == nil || slices.ContainsFunc(h.bases, known) {
		h.breach("%s has put an earlier base in place of a later one", operator)
	}
	h.bases = append(h.bases, after.base())
}

func (h *history) judgeResults(ids []string, after state) {
	for _, id := range ids {
		h.judgeResult(id, after)
	}
}

// judgeResult checks that a success is recorded only after its result is stored.
func (h *history) judgeResult(id string, after state) {
	if h.scenario.results.has(id) && !after.body.Status().Has(id) {
		h.breach("the success of %s is recorded, and its result is not there", id)
	}
}

// judgeChange checks at the end of a cycle that the handlers have seen the changes by others:
// either all handlers of the original object, or all handlers of its changes.
func (h *history) judgeChange(reason kopf.Reason) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.others.label && !h.others.spec || h.scenario.selective {
		return
	}
	last := map[string]bool{}
	for _, s := range h.starts {
		if s.reason == kopf.ReasonUpdate && h.others.seenBy(s) {
			return
		}
		if s.reason == reason {
			last[s.id] = h.others.seenBy(s)
		}
	}
	for id, saw := range last {
		if !saw {
			h.breach("%s has not seen the change of another client, and no update handler was called", id)
		}
	}
}
