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

	// It can be a sub-handler, or an unknown id, with suggestions of what may have been meant.
	var changing, similar []string
	for _, d := range h.Declared.Where(isChange) {
		changing = append(changing, d.ID)
		if !strings.HasPrefix(id, d.ID+"/") { // not the parent of a sub-handler
			similar = append(similar, d.ID)
		}
	}
	for _, d := range h.Selected {
		similar = append(similar, progress.Load(d.ID).Subrefs...)
	}
	similar = request.Suggest(id, similar)
	parent := call.TopOf(id, changing)
	switch {
	case len(similar) > 0:
		return because("no handler of this resource has the id %s; did you mean %s?", id, strings.Join(similar, " or "))
	case parent == "":
		return because("no handler of this resource has the id %s", id)
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
