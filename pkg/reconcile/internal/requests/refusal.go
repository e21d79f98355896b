package requests

import (
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
)

// whyNot returns why a request cannot be about the id now, or nil if it can.
func (h Handlers) whyNot(verb request.Verb, id string, progress *call.Progress, reason cause.Reason) *problem {
	for _, d := range h.Selected {
		if d.ID == id || slices.Contains(progress.Load(d.ID).Subrefs, id) {
			return nil
		}
	}
	declared := h.Declared.Where(func(d *handler.Declaration) bool { return d.ID == id })
	switch {
	case len(declared) > 0 && !slices.ContainsFunc(declared, isChange):
		return because("it is %s, and only handlers of changes can be retried, rerun, or skipped", kinds[declared[0].Kind])
	case len(declared) > 0 && verb == request.Rerun:
		return whyNotRerun(declared, reason)
	case len(declared) > 0:
		return nothingWaits(id, verb, reason)
	}
	suggestions := h.suggestions(id, progress)
	parent := h.topOf(id)
	switch {
	case parent == "" || len(suggestions) > 0:
		return because("%s", unknown(id, suggestions))
	case verb == request.Rerun:
		return because("it is a sub-handler: rerun its parent %s, which registers it", parent)
	case slices.ContainsFunc(h.Selected, func(d *handler.Declaration) bool { return d.ID == parent }):
		return because("it is a sub-handler that its parent %s has not registered", parent)
	default:
		nothing := nothingWaits(parent, verb, reason)
		nothing.why = "it is a sub-handler: " + nothing.why
		return nothing
	}
}

func isChange(d *handler.Declaration) bool { return d.Kind.IsChange() }

// kinds names the kinds of handlers without progress.
var kinds = map[handler.Kind]string{
	handler.OnEvent: "a handler of watch events", handler.OnDaemon: "a daemon", handler.OnTimer: "a timer", handler.OnIndex: "an index",
	handler.OnChild: "a handler of children", handler.OnRestore: "a part of a handler of kopf.Ensure", handler.OnDrift: "a handler of drift",
}

// whyNotRerun returns why declared handlers cannot be called for the object.
func whyNotRerun(declared []*handler.Declaration, reason cause.Reason) *problem {
	deletions := slices.ContainsFunc(declared, func(d *handler.Declaration) bool { return d.Kind == handler.OnDelete })
	others := slices.ContainsFunc(declared, func(d *handler.Declaration) bool { return d.Kind != handler.OnDelete })
	switch {
	case reason == cause.Delete && !deletions:
		return because("the object is being deleted, and it is not a deletion handler")
	case reason != cause.Delete && !others:
		return because("it is a deletion handler, and the object is not being deleted")
	default:
		return because("its labels or other filters do not match the object")
	}
}

// nothingWaits says that a handler has nothing to retry or to skip.
func nothingWaits(id string, verb request.Verb, reason cause.Reason) *problem {
	switch {
	case reason == cause.Delete:
		return because("%s takes no part in the deletion, so there is nothing to %s", id, verb)
	case reason.Handled():
		return because("%s takes no part in the %s, so there is nothing to %s", id, reason.Noun(), verb).or(request.Rerun)
	case verb == request.Skip:
		return because("nothing has happened to the object, so %s is not called anyway", id).or(request.Rerun)
	default:
		return because("%s does not wait for a retry", id).or(request.Rerun)
	}
}

// topOf returns the id of the declared handler that a sub-handler can belong to.
func (h Handlers) topOf(id string) (top string) {
	var ids []string
	for _, d := range h.Declared.Where(isChange) {
		ids = append(ids, d.ID)
	}
	return call.TopOf(id, ids)
}

// unknown says that there is no handler of the id, and what may have been meant.
func unknown(id string, suggestions []string) string {
	text := "no handler of this resource has the id " + id
	if len(suggestions) > 0 {
		text += "; did you mean " + strings.Join(suggestions, " or ") + "?"
	}
	return text
}

// suggestions returns what may have been meant by an unknown id.
func (h Handlers) suggestions(id string, progress *call.Progress) []string {
	var known []string
	for _, d := range h.Declared {
		if isChange(d) && !strings.HasPrefix(id, d.ID+"/") { // not the parent of a sub-handler
			known = append(known, d.ID)
		}
	}
	for _, d := range h.Selected {
		known = append(known, progress.Load(d.ID).Subrefs...)
	}
	return request.Suggest(id, known)
}
