package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/report"
)

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
