package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
)

// nameIn returns the hashes of the namespace and the name of an object.
func nameIn(raw map[string]any) string {
	metadata, _ := raw["metadata"].(map[string]any)
	return strings.TrimPrefix(fmt.Sprintf("%v/%v", orEmpty(metadata["namespace"]), orEmpty(metadata["name"])), "/")
}

func orEmpty(value any) any {
	if value == nil {
		return ""
	}
	return value
}

// reported returns the id under which users know the handler.
func (r *Replay) reported(id string) string {
	for _, d := range r.Handlers {
		if d.ID == id {
			return handler.ReportedID(d)
		}
	}
	return id
}

// readsIndex reports whether a function that is a filter of the handler can read an index.
func (r *Replay) readsIndex(id string) bool {
	hasIndex := slices.ContainsFunc(r.Handlers, func(d *handler.Declaration) bool { return d.Kind == handler.OnIndex })
	return hasIndex && slices.ContainsFunc(r.Handlers, func(d *handler.Declaration) bool { return d.ID == id && len(d.Predicates) > 0 })
}
