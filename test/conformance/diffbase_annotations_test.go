package conformance

import (
	"maps"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestDiffBaseAnnotations(t *testing.T) {
	type input struct {
		Body   map[string]any `json:"body"`
		Prefix string         `json:"prefix"`
		Key    string         `json:"key"`
	}
	type expect struct {
		Essence           map[string]any    `json:"essence"`
		StoredAnnotations map[string]string `json:"storedAnnotations"`
		Fetched           map[string]any    `json:"fetched"`
		EssenceAfterwards map[string]any    `json:"essenceAfterwards"`
	}
	for _, v := range load[input, expect](t, "diffbase_annotations") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "diffbase_annotations", v.Name) {
				return
			}
			base := storage.AnnotationsDiffBase{Prefix: v.Input.Prefix, Key: v.Input.Key}
			body := object.NewBody(v.Input.Body)
			essence := base.Build(body, nil)
			sameDocument(t, "essence", essence, v.Expect.Essence)

			into := storage.Patch{}
			if err := base.Store(t.Context(), body, into, essence); err != nil {
				t.Fatal(err)
			}
			sameAnnotations(t, into, v.Expect.StoredAnnotations)

			stored := withAnnotations(v.Input.Body, patchedAnnotations(into))
			fetched, err := base.Fetch(t.Context(), stored)
			if err != nil {
				t.Fatal(err)
			}
			sameDocument(t, "fetched", fetched, v.Expect.Fetched)
			sameDocument(t, "essence afterwards", base.Build(stored, nil), v.Expect.EssenceAfterwards)
		})
	}
}

// withAnnotations returns the object after the patch.
func withAnnotations(raw, annotations map[string]any) *object.Body {
	raw = maps.Clone(raw)
	metadata, _ := raw["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	merged := map[string]any{}
	present, _ := metadata["annotations"].(map[string]any)
	maps.Copy(merged, present)
	maps.Copy(merged, annotations)
	metadata["annotations"] = merged
	raw["metadata"] = metadata
	return object.NewBody(raw)
}
