package inspect

import (
	"maps"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/request"
	"github.com/kopf-go/kopf/pkg/model/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/execution"
)

// subhandlers is about records of sub-handlers, which are declared only while their parents run.
func (s changing) subhandlers() []Handler {
	var found []Handler
	for _, id := range slices.Sorted(maps.Keys(s.Records)) {
		r := s.Records[id]
		if slices.ContainsFunc(s.Handlers, func(h reconcile.InspectedHandler) bool { return h.ID == id }) {
			continue
		}
		said, past := Handler{ID: id, Kind: string(handler.Subhandler)}, attempts(r)
		if strings.HasPrefix(past, " ") {
			past = "," + past
		}
		switch {
		case r.Finished():
			said.State, said.Message, said.Todo = s.ofEnded(id, r)
		case s.isRequested(request.Skip, id):
			said.State, said.Message = string(verdict.Skipped), willSkip
		case s.isRequested(request.Retry, id):
			said.State, said.Message = string(verdict.Due), "is called as requested when its parent runs"+past
		case r.Delayed.After(s.now):
			said.State, said.Message, said.Todo = string(verdict.Waiting), "waits until "+s.at(r.Delayed)+attempts(r), s.toRetry(id)
		default:
			said.State, said.Message = string(verdict.Due), "is called when its parent runs"+past
		}
		found = append(found, said)
	}
	return append(found, s.failedSubhandlers()...)
}

// failedSubhandlers is about sub-handlers that have failed in an earlier cycle, as the conditions say.
func (s changing) failedSubhandlers() []Handler {
	var found []Handler
	var declared []string
	for _, h := range s.Handlers {
		if h.Kind.IsChange() {
			declared = append(declared, h.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Failed)) {
		parent := execution.ParentOf(id, declared)
		if _, isRecorded := s.Records[id]; isRecorded || parent == "" || parent == id {
			continue
		}
		found = append(found, Handler{
			ID: id, Kind: string(handler.Subhandler), State: string(verdict.Failed),
			Message: "has failed for good, as the condition Stalled says: it is called again with its parent", Todo: s.toRerun(parent),
		})
	}
	return found
}
