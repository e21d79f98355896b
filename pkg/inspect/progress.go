package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/storage"
)

// subhandlers is about records of sub-handlers, which are declared only while their parents run.
func (s *subject) subhandlers() []Handler {
	var found []Handler
	for _, id := range slices.Sorted(maps.Keys(s.Records)) {
		r := s.Records[id]
		if slices.ContainsFunc(s.Handlers, func(h inspection.Handler) bool { return h.ID == id }) {
			continue
		}
		said := Handler{ID: id, Kind: string(handler.Subhandler)}
		past := attempts(r)
		if strings.HasPrefix(past, " ") {
			past = "," + past
		}
		switch {
		case r.Finished():
			said.State, said.Message, said.Todo = s.ofEnded(id, r)
		case s.isRequested(request.Skip, id):
			said.State = string(verdict.Skipped)
			said.Message = willSkip
		case s.isRequested(request.Retry, id):
			said.State = string(verdict.Due)
			said.Message = "is called as requested when its parent runs" + past
		case r.Delayed.After(s.now):
			said.State = string(verdict.Waiting)
			said.Message = "waits until " + s.at(r.Delayed) + attempts(r)
			said.Todo = s.toRetry(id)
		default:
			said.State = string(verdict.Due)
			said.Message = "is called when its parent runs" + past
		}
		found = append(found, said)
	}

	// Others have failed in an earlier cycle, as the conditions say.
	var declared []string
	for _, h := range s.Handlers {
		if h.Kind.IsChange() {
			declared = append(declared, h.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Failed)) {
		top := call.TopOf(id, declared)
		if _, isRecorded := s.Records[id]; isRecorded || top == "" || top == id {
			continue
		}
		found = append(found, Handler{
			ID: id, Kind: string(handler.Subhandler), State: string(verdict.Failed),
			Message: "has failed for good, as the condition Stalled says: it is called again with its parent", Todo: s.toRerun(top),
		})
	}
	return found
}

// later says what has changed since a handler has ended, while others have not.
func (s *subject) later(h inspection.Handler) string {
	if len(h.Later) == 0 {
		return ""
	}
	if !h.Again {
		return "; it is not for what has changed since then"
	}
	changes := s.change(h.Later[0])
	if len(h.Later) > 1 {
		changes += fmt.Sprintf(", and %d more", len(h.Later)-1)
	}
	text := "; it is called again for what has changed since then (" + changes + ")"
	var waiting []string
	for _, other := range s.Handlers {
		r, recorded := s.Records[other.ID]
		if other.Kind.IsChange() && recorded && !r.Finished() && r.Purpose == s.Reason && !slices.Contains(waiting, other.ID) {
			waiting = append(waiting, other.ID)
		}
	}
	if len(waiting) > 0 {
		return fmt.Sprintf("%s when %s %s ended: retry or skip %s if you cannot wait", text, strings.Join(waiting, ", "), plural.Word(len(waiting), "has", "have"), plural.Word(len(waiting), "it", "them"))
	}
	return text
}

// limit says how many attempts are left.
func (s *subject) limit(h inspection.Handler, r storage.Record) string {
	var limits []string
	if h.Retries != nil {
		limits = append(limits, fmt.Sprintf("attempt %d of %d", r.Retries+1, *h.Retries))
	}
	if h.Timeout > 0 && !r.Started.IsZero() {
		limits = append(limits, "given up at "+s.at(r.Started.Add(h.Timeout)))
	}
	if limits == nil {
		return ""
	}
	return " (" + strings.Join(limits, "; ") + ")"
}

// attempts says how often a handler was called, and with which error.
func attempts(r storage.Record) string {
	text := ""
	if r.Retries > 0 {
		text = " after " + plural.Of(r.Retries, "attempt", "attempts")
	}
	if r.Message != "" {
		text += lastError + r.Message
	}
	return text
}

// addAttempts adds the attempts of the open cycle, or of a handler that is called for other objects.
func (s *subject) addAttempts(h *Handler) {
	r, recorded := s.Records[h.ID]
	if !recorded || r.Purpose != "" && r.Purpose != s.Reason {
		return
	}
	h.Attempts = r.Retries
	h.Started = r.Started
	if !r.Finished() {
		h.Delayed = r.Delayed
	}
}

// lastError begins the end of a message that has an error.
const lastError = ", the last error: "

// beforeError adds a clause to a message, in front of the error: that can end with a command, which
// people copy to the end of the line.
func beforeError(message, clause string) string {
	before, text, found := strings.Cut(message, lastError)
	if !found {
		return message + clause
	}
	return before + clause + lastError + text
}
