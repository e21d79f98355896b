package main

import (
	"slices"
	"strings"
	"time"

	"github.com/kopf-go/kopf/pkg/storage"
)

// neverTurn begins the message of a handler that was skipped because of the order: it is that of
// pkg/reconcile/call.
const neverTurn = "its turn never comes: "

func isSkipped(r *storage.Record) bool {
	return r != nil && r.Success && strings.HasPrefix(r.Message, neverTurn)
}

// end is how a handler has ended.
type end string

const (
	isOpen       end = ""
	hasSucceeded end = "success"
	hasFailed    end = "failure"
	wasSkipped   end = "skipped"
)

// end returns how a handler has ended in the open cycle. Without a record, it can be ahead.
func (v *version) end(id string) end {
	r := v.record(id)
	switch {
	case isSkipped(r):
		return wasSkipped
	case r != nil && r.Failure:
		return hasFailed
	case r != nil && r.Success:
		return hasSucceeded
	case v.cycle == nil:
		return isOpen
	}
	_, isAhead := v.cycle.At[id]
	if !isAhead {
		return isOpen
	}
	return hasSucceeded // for those that follow it, because it does not take part
}

// isInSequence reports whether a handler follows others, or others follow it: they handle each change together.
func isInSequence(id string) bool {
	return slices.Contains([]string{"first", "second", "rescue", "again"}, id)
}

// judgeTurn expects that the handlers that a handler follows have ended as it wants, according to the version that it
// sees. A handler that was called already goes on.
func (s *subject) judgeTurn(a *attempt) {
	v := s.versions[a.number]
	if v == nil || a.Retry > 0 || s.former[a.Process] {
		return
	}
	if other := follows[a.Handler]; other != "" && v.end(other) != hasSucceeded {
		s.breach("%s: %s has not succeeded in version %d", a, other, v.number)
	}
	hasFailed := func(other string) bool { return v.end(other) == hasFailed }
	if others := followsFailure[a.Handler]; len(others) > 0 && !slices.ContainsFunc(others, hasFailed) {
		s.breach("%s: none of %s has failed in version %d", a, strings.Join(others, ", "), v.number)
	}
}

// judgeSkips expects that handlers are skipped only if their turn never comes.
func (s *subject) judgeSkips() {
	var before *version
	for _, e := range s.events {
		v := e.version
		if v == nil || v.gone {
			continue
		}
		isNew := func(id string) bool {
			return before != nil && number(before.base) == number(v.base) && isSkipped(v.record(id)) && !isSkipped(before.record(id))
		}
		for id, other := range follows {
			if end := v.end(other); isNew(id) && end != hasFailed && end != wasSkipped {
				s.breach("%s is skipped in version %d, in which %s has not failed", id, v.number, other)
			}
		}
		for id, others := range followsFailure {
			hasTurn := func(other string) bool { return v.end(other) == isOpen || v.end(other) == hasFailed }
			if isNew(id) && slices.ContainsFunc(others, hasTurn) {
				s.breach("%s is skipped in version %d, in which not all of %s have succeeded", id, v.number, strings.Join(others, ", "))
			}
		}
		before = v
	}
}

// mayBeSkipped reports whether the order can have skipped a handler before the place in the history. What skips it can
// have happened long before: handlers that are ahead of others do not take part in some cycles.
func (s *subject) mayBeSkipped(id string, until int) bool {
	has := func(id, outcome string) bool {
		return slices.ContainsFunc(s.events[:until], func(e event) bool {
			return e.call != nil && e.call.Handler == id && e.call.Outcome == outcome
		})
	}
	switch id {
	case "second":
		return has("first", "permanent")
	case "rescue":
		return has("first", "success")
	case "again":
		return has("first", "success") || has("rescue", "permanent")
	}
	return false
}

// judgeRuns expects each run of the schedule once: no call for a run that is stored, none left out, and none stored
// without a call that has ended. What is stored stays, also while an operator works that does not know it.
func (s *subject) judgeRuns() {
	var last *storage.Record
	ends := map[time.Time]string{}
	for _, e := range s.events {
		if e.call != nil && e.call.Handler == "backup" {
			run, err := time.Parse(time.RFC3339, e.call.Run)
			switch {
			case err != nil:
				s.breach("the run of a call cannot be read: %v", err)
			case e.call.Phase == "end":
				ends[run] = e.call.Outcome
			case last != nil && !run.After(last.Started) && e.call.Process == e.process:
				s.breach("%s: the run is stored already", e.call)
			}
		}
		v := e.version
		if v == nil || v.gone {
			continue
		}
		switch {
		case v.run == nil && last != nil:
			s.breach("version %d has lost the last run", v.number)
			return
		case v.run == nil || last != nil && v.run.Equal(last):
			continue
		case last != nil && !v.run.Started.Equal(last.Started.Add(time.Minute)):
			s.breach("version %d: the run of %s is stored after that of %s", v.number, v.run.Started, last.Started)
		case last != nil && ends[v.run.Started] != map[bool]string{true: "success", false: "permanent"}[v.run.Success]:
			s.breach("version %d: the run of %s is stored, but its last call has the outcome %q", v.number, v.run.Started, ends[v.run.Started])
		}
		last = v.run
	}
}
