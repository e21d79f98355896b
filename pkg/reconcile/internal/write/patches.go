package write

import (
	"context"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/storage"
)

// editsPatch returns the merge patch of all edits and of the conditions, and its part that
// must be written separately to the status. It returns no patch if this write deletes the
// object, because the edits would be lost.
func (s *Session) editsPatch(u *Update) (main, status map[string]any) {
	if len(s.state.edits) == 0 && !s.hasConditions(u) || u.deletesObject(s.body, s.writer.finalizer()) {
		return nil, nil
	}
	wanted := s.body.Raw()
	s.state.dropEdits(func(edit call.Edit) bool {
		merge, err := resolve(edit, wanted)
		if err != nil {
			s.failHandler(u, edit, err)
			return true
		}
		wanted = patch.ApplyMerge(wanted, merge)
		return false
	})
	u.conditions = nil
	if s.hasConditions(u) {
		more, _ := patch.SplitStatus(patch.Difference(s.body.Raw(), wanted)) // a change of more than the status makes the pass continue
		u.conditions = u.Decision.Conditions.Amend(s.body.Raw(), wanted, u.continues || len(more) > 0)
		wanted = patch.ApplyMerge(wanted, u.conditions)
	}
	main = patch.Difference(s.body.Raw(), wanted)
	if s.target.StatusSubresource {
		return patch.SplitStatus(main)
	}
	return main, nil
}

// conditionsRefused is the report after which the conditions of an object are not written
// anymore.
const conditionsRefused = "conditions refused"

// hasConditions reports whether the update writes the conditions of the object.
func (s *Session) hasConditions(u *Update) bool {
	return u.Decision.Conditions != nil && !u.withoutEdits && !u.isPartial() && !s.report.Object.Has(conditionsRefused)
}

// resolve converts an edit to a merge patch for the object in its current state.
func resolve(edit call.Edit, body map[string]any) (map[string]any, error) {
	merge, err := edit.Patch.Resolve(body)
	if err != nil {
		return nil, err
	}
	if edit.Result != nil {
		merge = withResult(merge, edit.ID, edit.Result)
	}
	if edit.StatusWritten {
		merge, _ = patch.SplitStatus(merge)
	}
	return merge, nil
}

// withResult adds the result of a handler to its patch, which it does not change.
func withResult(merge map[string]any, id string, result any) map[string]any {
	into := storage.Patch(maps.Clone(merge))
	if into == nil {
		into = storage.Patch{}
	}
	if status, ok := into["status"].(map[string]any); ok {
		into["status"] = maps.Clone(status)
	}
	into.Set(object.Path{"status", id}, result)
	return into
}

// recordsPatch returns the merge patch of the finalizer and of the records, to be
// applied after the edits.
func (s *Session) recordsPatch(ctx context.Context, u *Update, edits map[string]any) (storage.Patch, error) {
	into := storage.Patch{}
	u.putFinalizer(object.NewBody(patch.ApplyMerge(s.body.Raw(), edits)), s.writer.finalizer(), into)
	if u.onlyFinalizer {
		return into, nil
	}
	if !u.deletesObject(s.body, s.writer.finalizer()) {
		if !u.isPartial() { // a request is not honored before the outcomes are stored
			for key, value := range u.Decision.AnnotationsOf(u.endsCycle() && !u.finished) {
				into.Set(object.Path{"metadata", "annotations", key}, value)
			}
		}
		if err := s.writer.Records.StoreCalls(ctx, u.Calls, s.body, into, u.isWithheld); err != nil {
			return nil, err
		}
	}
	records := s.writer.Records
	stale := u.Decision.StaleRecords
	switch {
	case u.deletesObject(s.body, s.writer.finalizer()) || u.finished:
		return into, nil
	case stale != nil:
		return into, records.Purge(ctx, stale, s.body, into)
	case u.Cycle == nil:
		return into, nil
	case u.endsCycle() && !u.isHeldByFailure():
		return into, records.End(ctx, u.Cycle, s.body, into, s.report)
	default:
		return into, records.Store(ctx, u.Cycle, s.body, into, s.report, func(id string) (bool, error) {
			if u.isWithheld(id) {
				return true, nil
			}
			return s.isOvertaken(ctx, u, id)
		})
	}
}

// putFinalizer adds or removes the operator's finalizer, and keeps all others.
func (u *Update) putFinalizer(body *object.Body, ours string, into storage.Patch) {
	present := body.Finalizers()
	has := slices.Contains(present, ours)
	switch {
	case u.Decision.AddFinalizer && !has && !body.Deleting():
		into.Set(object.Path{"metadata", "finalizers"}, toAny(append(present, ours)))
	case u.removesFinalizer() && has:
		present = slices.DeleteFunc(present, func(f string) bool { return f == ours })
		into.Set(object.Path{"metadata", "finalizers"}, toAny(present))
	}
}

func toAny(texts []string) []any {
	items := make([]any, 0, len(texts))
	for _, text := range texts {
		items = append(items, text)
	}
	return items
}
