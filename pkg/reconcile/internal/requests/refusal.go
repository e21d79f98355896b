package requests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/request"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// whyNot returns why a request cannot be about the id now, or "" if it can.
func (h Handlers) whyNot(verb request.Verb, id string, progress *execution.Progress, reason cause.Reason) string {
	for _, d := range h.Due {
		if d.ID == id || slices.Contains(progress.Load(d.ID).Subrefs, id) {
			return ""
		}
	}
	declared := h.Declared.Where(func(d *handler.Declaration) bool { return d.ID == id })
	switch {
	case len(declared) > 0 && !slices.ContainsFunc(declared, isChange):
		return fmt.Sprintf("it is %s, and only handlers of changes can be retried, rerun, or skipped", kinds[declared[0].Kind])
	case len(declared) > 0 && verb == request.Rerun:
		return whyNotRerun(declared, reason)
	case len(declared) > 0:
		return nothingWaits(id, verb, reason)
	}
	suggestions, parent := h.suggestions(id, progress), h.parentOf(id)
	switch {
	case parent == "" || len(suggestions) > 0:
		return unknown(id, suggestions)
	case verb == request.Rerun:
		return fmt.Sprintf("it is a sub-handler: rerun its parent %s, which registers it", parent)
	case slices.ContainsFunc(h.Due, func(d *handler.Declaration) bool { return d.ID == parent }):
		return fmt.Sprintf("it is a sub-handler that its parent %s has not registered", parent)
	default:
		return "it is a sub-handler: " + nothingWaits(parent, verb, reason)
	}
}

func isChange(d *handler.Declaration) bool { return d.Kind.IsChange() }

// kinds names the kinds of handlers without progress.
var kinds = map[handler.Kind]string{
	handler.OnEvent: "a handler of watch events", handler.OnDaemon: "a daemon", handler.OnTimer: "a timer", handler.OnIndex: "an index",
	handler.OnChild: "a handler of children", handler.OnDisturbance: "a part of a handler of kopf.Ensure", handler.OnDrift: "a handler of drift",
}

// whyNotRerun returns why declared handlers cannot be called for the object.
func whyNotRerun(declared []*handler.Declaration, reason cause.Reason) string {
	deletions := slices.ContainsFunc(declared, func(d *handler.Declaration) bool { return d.Kind == handler.OnDelete })
	others := slices.ContainsFunc(declared, func(d *handler.Declaration) bool { return d.Kind != handler.OnDelete })
	switch {
	case reason == cause.Delete && !deletions:
		return "the object is being deleted, and it is not a deletion handler"
	case reason != cause.Delete && !others:
		return "it is a deletion handler, and the object is not being deleted"
	default:
		return "its labels or other filters do not match the object"
	}
}

// nothingWaits says that a handler has nothing to retry or to skip.
func nothingWaits(id string, verb request.Verb, reason cause.Reason) string {
	switch {
	case reason == cause.Delete:
		return fmt.Sprintf("%s takes no part in the deletion, so there is nothing to %s", id, verb)
	case reason.Handled():
		return fmt.Sprintf("%s takes no part in the %s, so there is nothing to %s; to call it again, use %s", id, reason.Noun(), verb, request.Rerun.Name())
	case verb == request.Skip:
		return fmt.Sprintf("nothing has happened to the object, so %s is not called anyway; to call it again, use %s", id, request.Rerun.Name())
	default:
		return fmt.Sprintf("%s does not wait for a retry; to call it again, use %s", id, request.Rerun.Name())
	}
}

// parentOf returns the longest id of a declared handler that the id can be a sub-handler of.
func (h Handlers) parentOf(id string) (parent string) {
	for _, d := range h.Declared {
		if isChange(d) && len(d.ID) > len(parent) && strings.HasPrefix(id, d.ID+"/") {
			parent = d.ID
		}
	}
	return parent
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
func (h Handlers) suggestions(id string, progress *execution.Progress) []string {
	var known []string
	for _, d := range h.Declared {
		if isChange(d) && !strings.HasPrefix(id, d.ID+"/") { // not the parent of a sub-handler
			known = append(known, d.ID)
		}
	}
	for _, d := range h.Due {
		known = append(known, progress.Load(d.ID).Subrefs...)
	}
	return request.Suggest(id, known)
}
