package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/storage"
)

// quoted returns the value of a label or an annotation.
func quoted(values map[string]string, key string) string {
	value, has := values[key]
	if !has {
		return "absent"
	}
	return short(value)
}

// valueAt returns the value of the field of a handler in a state of the object.
func (s *subject) valueAt(state map[string]any, h *handler.Declaration) string {
	value, has := object.Lookup(state, h.Field)
	if !has {
		return "absent"
	}
	if s.isSecret() {
		return "another value"
	}
	return short(value)
}

// handlers says what is known about the declarations, each handler of Ensure as one.
func (s *subject) handlers() []Handler {
	var all []Handler
	for _, h := range s.Handlers {
		switch group := s.partsOf(h); {
		case h.Kind == handler.Conditions: // declared like a handler, and never called
		case group == nil:
			all = withHandler(all, s.handler(h))
		case group[0].Declaration == h.Declaration:
			all = append(all, s.ensured(group))
		}
	}
	return all
}

// withHandler adds what is said of a declaration. Declarations with one id are one handler, and are shown as one if
// the same is said of them.
func withHandler(all []Handler, h Handler) []Handler {
	i := slices.IndexFunc(all, func(other Handler) bool {
		return other.ID == h.ID && other.State == h.State && other.Message == h.Message && other.Todo == h.Todo
	})
	if i < 0 {
		return append(all, h)
	}
	if !slices.Contains(strings.Split(all[i].Kind, ", "), h.Kind) {
		all[i].Kind += ", " + h.Kind
	}
	if all[i].DeclaredAt != h.DeclaredAt {
		all[i].DeclaredAt += ", " + h.DeclaredAt
	}
	return all
}

// handler says what is known about one declaration.
func (s *subject) handler(h inspection.Handler) Handler {
	said := Handler{ID: h.ID, Kind: string(h.Kind), DeclaredAt: h.DeclaredAt}
	switch {
	case h.Undecidable != nil:
		said.State = "undecidable"
		said.Message = fmt.Sprintf("is not decidable here: a filter of it panicked, called without a running operator (%v)", h.Undecidable)
		if unavailable := (*handler.UnavailableError)(nil); errors.As(h.Undecidable, &unavailable) {
			said.Message = "is not decidable here: a filter of it uses " + unavailable.What + ", which exists only in a running operator"
		}
		said.Todo = "see the log of the operator with --verbose, and what it has done: " + s.commands.Kubectl("describe "+s.named())
	case h.Kind.IsChange():
		said.State, said.Message, said.Todo = s.ofChange(h)
	case !h.OutOfScope.Matches():
		said.State = string(verdict.Mismatched)
		said.Message = "is not for this object: " + s.wants(h.Declaration, h.OutOfScope)
	case h.Misfit != nil:
		said.State = string(verdict.Misfit)
		said.Message = "cannot be called: " + h.Misfit.Error()
		said.Todo = "correct the object, or deploy an operator with a type that fits"
	case h.Kind.IsBackground():
		said.State, said.Message = s.ofBackground(h)
		said.NextRun = h.NextRun
		if h.LastRun != nil {
			said.LastRun = h.LastRun.Started
		}
	default:
		said.State, said.Message = s.ofOthers(h)
	}
	return said
}

// ofChange is about one declaration of a handler of changes.
func (s *subject) ofChange(h inspection.Handler) (state, message, todo string) {
	v := h.Verdict
	r, recorded := s.Records[h.ID]
	recorded = recorded && r.Purpose == s.Reason
	switch {
	case h.Skips:
		return string(verdict.Skipped), willSkip, ""
	case recorded && v.State == verdict.Dropped:
		return string(v.State), beforeError("is not retried anymore"+attempts(r), ", because "+s.wants(h.Declaration, v.Filter)), ""
	case recorded && r.Finished():
		state, message, todo = s.ofEnded(h.ID, r)
		return state, message + s.later(h), todo
	case h.Selected:
		return s.ofSelected(h, r, recorded)
	case !h.OutOfScope.Matches():
		return string(verdict.Mismatched), "is not for this object: " + s.wants(h.Declaration, h.OutOfScope), ""
	case h.RevisionFailed && h.RevisionMark == h.Revision && !s.isDeleted():
		again := "it is called again on request, for a change that it is for, or under another revision"
		if h.Kind == handler.OnCreate {
			again = "it is called again on request, or under another revision"
		}
		return string(verdict.Failed), fmt.Sprintf("has failed for good under its revision %s: %s", h.Revision, again), s.toRerun(h.ID)
	case awaitsRollout(s.Object, h):
		return s.ofRollout(h)
	case s.hasFailedBefore(h):
		return string(verdict.Failed), "has failed for good, as the condition Stalled says: it is called again on request, or for a change that it is for", s.toRerun(h.ID)
	default:
		state, message = s.ofIdle(h)
		if state == "undecidable" {
			todo = "see the events and the log: " + s.commands.Kubectl("describe "+s.named())
		}
		return state, message, todo
	}
}

// toRerun says how a handler that has failed is called again.
func (s *subject) toRerun(id string) string {
	return "correct the cause, and then: " + s.commands.Of("rerun", s.named()+" "+id)
}

// toRetry says how a handler that waits is called now.
func (s *subject) toRetry(id string) string {
	return "to call it now: " + s.commands.Of(string(request.Retry), s.named()+" "+id)
}

// isRequested reports whether an operator will grant a request about the handler.
func (s *subject) isRequested(verb request.Verb, id string) bool {
	return slices.ContainsFunc(s.Requests, func(n inspection.Note) bool { return n.Verb == verb && n.Handler == id && !n.Refused })
}

// willSkip is said of a handler that an operator will skip.
const willSkip = "will be skipped as requested, when an operator honors the request"

// ofEnded is about handlers that have ended in the current cycle.
func (s *subject) ofEnded(id string, r storage.Record) (state, message, todo string) {
	when := ""
	if !r.Stopped.IsZero() {
		when = " at " + s.at(r.Stopped)
	}
	switch {
	case r.Failure:
		return string(verdict.Failed), "has failed for good" + when + attempts(r), s.toRerun(id)
	case r.Message != "":
		return string(verdict.Skipped), "was skipped" + when + ": " + r.Message, ""
	default:
		return string(verdict.Succeeded), "has succeeded" + when, ""
	}
}

// ofSelected is about handlers that take part in the current cycle.
func (s *subject) ofSelected(h inspection.Handler, r storage.Record, recorded bool) (state, message, todo string) {
	past := ""
	if recorded {
		past = attempts(r)
	}
	switch h.Verdict.State {
	case verdict.Suspended:
		return string(verdict.Suspended), "waits, because the object is suspended", s.commands.Of("unsuspend", s.named())
	case verdict.Misfit:
		arguments := s.named() + " " + h.ID
		if s.Reason == cause.Delete {
			arguments += " --abandon"
		}
		return string(verdict.Misfit), "cannot be called: " + h.Verdict.Message, "correct the object, or deploy an operator with a type that fits, or: " + s.commands.Of("skip", arguments)
	case verdict.Skipped:
		return string(verdict.Skipped), "will be skipped: " + h.Verdict.Message, ""
	case verdict.OutOfTurn:
		return string(verdict.OutOfTurn), "waits " + h.Verdict.Message + " in its order", ""
	case verdict.Waiting:
		return string(verdict.Waiting), beforeError("waits until "+s.at(r.Delayed)+past, s.limit(h, r)), s.toRetry(h.ID)
	default:
		again := ""
		switch {
		case s.isRequested(request.Retry, h.ID):
			again = " as requested,"
		case !h.Verdict.Filter.Matches(): // on request, or because it has seen a change that was taken back
			again = " again"
		}
		if h.Idle > 0 && !s.isDeleted() {
			past += fmt.Sprintf(", when the object has not changed for %s", duration(h.Idle))
		}
		return string(verdict.Due), beforeError("will run"+again+past, s.limit(h, r)), ""
	}
}

// ofIdle is about handlers that apply to the object, but not to what has happened to it.
func (s *subject) ofIdle(h inspection.Handler) (state, message string) {
	const later, done = "later", "done"
	switch {
	case s.Reason == cause.Free && h.Kind == handler.OnDelete:
		return "undecidable", goneFinalizer
	case s.Reason == cause.Delete || s.Reason == cause.Free:
		return string(verdict.OtherReason), "is not called: the object is being deleted"
	case h.Kind == handler.OnDelete:
		return later, "will run when the object is deleted"
	case h.Resumes && s.Suspension.Active:
		return string(verdict.Suspended), "is not called, because the object is suspended"
	case h.Resumes:
		return later, "will run when an operator starts"
	case h.Kind == handler.OnResume:
		return later, "will run when an operator starts after the object was handled"
	case h.Kind == handler.OnCreate:
		return done, "has nothing to do: the object was handled before"
	case s.Reason == cause.Create:
		return later, "has nothing to do: it is for later changes"
	case h.Verdict.State == verdict.Unchanged:
		return done, "has nothing to do: its field " + h.Verdict.Filter.Key + " has not changed"
	case h.Verdict.State == verdict.Mismatched:
		return string(verdict.Mismatched), "is not for this change: " + s.wants(h.Declaration, h.Verdict.Filter)
	default:
		return done, "has nothing to do: nothing has changed since the object was handled"
	}
}

// goneFinalizer says that nothing is known about deletion handlers without the finalizer.
const goneFinalizer = "is not called anymore, because the object is being deleted without the finalizer of this operator. The operator removes it when the handler has ended, so the handler was called, unless the object did not have the finalizer, or another client has removed it; which of these is not decidable here"
