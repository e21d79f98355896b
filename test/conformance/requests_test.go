package conformance

import (
	"maps"
	"testing"

	"github.com/kopf-go/kopf/internal/request"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/patch"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/kopfrules"
)

// A request, and what the operator stores about it, is no change of an object: neither for the
// operator, nor for an operator of Kopf with any storages. Each object was handled at once, so that
// its progress was never stored.
func TestRequestsAreNoChanges(t *testing.T) {
	const prefix = "my-op.example.com"
	bases := map[string]storage.DiffBase{
		"annotations":                     storage.AnnotationsDiffBase{},
		"annotations with another prefix": storage.AnnotationsDiffBase{Prefix: prefix},
		"the status":                      storage.StatusDiffBase{},
		"several places":                  storage.MultiDiffBase{storage.StatusDiffBase{}, storage.AnnotationsDiffBase{Prefix: prefix}},
	}
	records := map[string]storage.Progress{
		"annotations":                     storage.AnnotationsProgress{},
		"annotations with another prefix": storage.AnnotationsProgress{Prefix: prefix},
		"annotations with an odd prefix":  storage.SmartProgress{Prefix: "kopf.example.com"},
		"the status":                      storage.StatusProgress{},
		"several places":                  storage.MultiProgress{storage.AnnotationsProgress{Prefix: prefix}, storage.StatusProgress{}},
	}
	for where, base := range bases {
		for whereToo, progress := range records {
			t.Run("the base in "+where+", the progress in "+whereToo, func(t *testing.T) {
				handled := handledOnce(t, base)
				asked := withRequests(handled, storage.RequestPrefix(base, progress)+"/")
				sameDocument(t, "the essence of Kopf", kopfrules.Essence(asked, nil, nil), kopfrules.Essence(handled, nil, nil))
				ours := func(raw map[string]any) object.Essence { return progress.Clear(base.Build(object.NewBody(raw), nil)) }
				sameDocument(t, "the essence", ours(asked), ours(handled))
			})
		}
	}
}

// handledOnce returns an object with the base of its first handling.
func handledOnce(t *testing.T, base storage.DiffBase) map[string]any {
	t.Helper()
	raw := map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "spec": map[string]any{"size": int64(1)},
		"metadata": map[string]any{"name": "one", "annotations": map[string]any{"note": "x"}},
	}
	into := storage.Patch{}
	if err := base.Store(t.Context(), object.NewBody(raw), into, base.Build(object.NewBody(raw), nil)); err != nil {
		t.Fatal(err)
	}
	return patch.ApplyMerge(raw, into)
}

// withRequests returns the object with all annotations of requests and of revisions.
func withRequests(raw map[string]any, prefix string) map[string]any {
	annotations := map[string]any{prefix + request.Handled: "{}", prefix + reconcile.RevisionsAnnotation: "{}"}
	for _, verb := range []request.Verb{request.Retry, request.Rerun, request.Skip, request.Suspend} {
		annotations[prefix+verb.Name()] = "1 create_fn"
	}
	return patch.ApplyMerge(maps.Clone(raw), map[string]any{"metadata": map[string]any{"annotations": annotations}})
}
