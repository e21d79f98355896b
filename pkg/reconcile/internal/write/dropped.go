package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile/call"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

// The definition of a resource can change while a handler runs: the status becomes a
// subresource, or is one no longer. Discovery notices that a moment later, but the outcome of
// the handler must not be lost. So a session also learns it from the responses to its writes.

// statusNotFoundError is a response 404 to a write of the status as a subresource.
type statusNotFoundError struct{ error }

func (e *statusNotFoundError) Unwrap() error { return e.error }

// isStatusUnserved reports whether a response 404 means that the status is not a subresource,
// because confirmGone has found the object.
func isStatusUnserved(notFound, confirmed error) bool {
	var status *statusNotFoundError
	return errors.As(notFound, &status) && errors.Is(confirmed, errListed)
}

// subresourceOf returns the subresource that a part of an object is written to, or "".
func (s *Session) subresourceOf(part string) string {
	if s.statusNotFound {
		return ""
	}
	return part
}

// errStatusNotStored ends a pass without an outcome. Either the response 404 came from an API
// server that lags behind, or discovery learns in a moment that the resource has no status.
var errStatusNotStored = errors.New("the API server neither finds the status of the object nor stores it with the object")

// checkStatusStored checks the response to a write of the status alone to the main resource:
// if the status is a subresource nevertheless, or not in the schema, it was dropped.
func (s *Session) checkStatusStored(merge map[string]any) error {
	s.statusNotFound = false
	if object.Equal(patch.Minimal(s.body.Raw(), merge), merge) {
		return errStatusNotStored
	}
	s.redefine(false)
	return nil
}

// redefine changes how this session, and later ones, write the status.
func (s *Session) redefine(subresource bool) {
	s.target.StatusSubresource = subresource
	s.report.Log.V(1).Info("The definition of the resource has changed: the status is written in another way.", "subresource", subresource)
	if s.target.Redefined != nil {
		s.target.Redefined(subresource)
	}
}

// writeDroppedStatus checks whether the server has dropped the status from the main write.
// Either the schema does not have the fields, or the status is a subresource now. Only an
// attempt to write it there tells, which is made once for the same fields.
func (s *Session) writeDroppedStatus(ctx context.Context, u *Update, merge, edits map[string]any) error {
	_, status := patch.SplitStatus(merge)
	dropped := patch.Minimal(s.body.Raw(), status)
	if len(dropped) == 0 {
		return nil
	}
	unserved := "unserved status " + s.target.Key.Resource + " " + strings.Join(missing(dropped, nil, nil), ", ")
	if s.report.Shared.Has(unserved) {
		return nil
	}
	_, theirs := patch.SplitStatus(edits)
	s.state.edits = statusOf(s.state.edits, patch.Minimal(s.body.Raw(), theirs))
	s.target.StatusSubresource = true
	err := s.send(ctx, u, "status", dropped, theirs)
	switch {
	case err == nil:
		s.redefine(true)
	case apierrors.IsNotFound(err) && s.isListed(ctx):
		s.target.StatusSubresource = false
		s.state.mustRead = false
		s.report.Shared.First(unserved)
		s.warnPruned(status)
		return nil
	}
	return err
}

// isListed reports whether the object exists for certain. A response 404 to a write of its
// status then means that there is no such subresource. That is so even if the response comes
// from a part of the API server that does not know the object, as with built-in resources.
func (s *Session) isListed(ctx context.Context) bool {
	uid, _, err := s.target.API.Find(ctx, s.target.Key.NamespacedName)
	return err == nil && uid == s.body.UID()
}

// statusOf returns one edit that stands for the status of all edits, whose other parts are
// stored. It has no ID, because it belongs to no handler: the records are stored, too, so that it must not yield to
// them.
func statusOf(edits []call.Edit, status map[string]any) []call.Edit {
	rest := call.Edit{Patch: &patch.Patch{}, Done: func() {
		for _, edit := range edits {
			edit.Finish()
		}
	}}
	if !slices.ContainsFunc(edits, func(edit call.Edit) bool { return edit.Refused == nil }) {
		rest.Refused = func(why error) {
			for _, edit := range edits {
				edit.Refused(why)
			}
		}
	}
	rest.Patch.Merge(status)
	return []call.Edit{rest}
}

// warnPruned reports, once per resource, which written fields the server has dropped because
// the schema of the resource does not have them.
func (s *Session) warnPruned(merge map[string]any) {
	if !isPrunable(merge) {
		return // comparing would decode the entire response
	}
	fields := missing(merge, s.body.Raw(), nil)
	if len(fields) == 0 {
		return
	}
	list := strings.Join(fields, ", ")
	resource := s.target.Key.Resource
	if !s.report.Shared.First("pruned " + resource + " " + list) {
		return
	}
	s.report.Log.Info("The API server has dropped fields from a write: the schema of the resource does not have them. "+
		"Add them to the CustomResourceDefinition, or x-kubernetes-preserve-unknown-fields; built-in resources keep no results of handlers.", "fields", list)
	s.report.Event(s.body, report.Warning, "PrunedFields", fmt.Sprintf("The schema of %s does not have these fields, so they were not stored: %s", resource, list))
}

// isPrunable reports whether a schema can lack any of the fields. It always has the metadata.
func isPrunable(merge map[string]any) bool {
	for key, value := range merge {
		metadata, ok := value.(map[string]any)
		if key != "metadata" || !ok {
			return true
		}
		for field := range metadata {
			if field != "annotations" && field != "finalizers" && field != "labels" {
				return true
			}
		}
	}
	return false
}

// missing returns the fields of a merge patch that the resulting object does not have.
func missing(merge map[string]any, body any, above object.Path) []string {
	var fields []string
	for key, value := range merge {
		path := append(slices.Clone(above), key)
		present, exists := object.Lookup(body, object.Path{key})
		inner, mapping := value.(map[string]any)
		switch {
		case mapping && (exists || len(above) == 0): // "status" alone is too vague
			fields = append(fields, missing(inner, present, path)...)
		case !exists && !isEmpty(value):
			fields = append(fields, path.String())
		}
	}
	slices.Sort(fields)
	return fields
}

// isEmpty reports whether the absence of the value is equivalent to it: it only removes
// fields, or is an empty list or mapping, which the API server drops.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range value {
			if !isEmpty(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return false
}
