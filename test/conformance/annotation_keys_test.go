package conformance

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

// TestAnnotationKeys checks the keys of the annotations in which a storage stores a record, with
// and without those of version 1.
func TestAnnotationKeys(t *testing.T) {
	type input struct {
		HandlerID  string `json:"handlerId"`
		Prefix     string `json:"prefix"`
		ReplicaSet bool   `json:"replicaSetOfDeployment"`
	}
	type expect struct {
		V1 *string `json:"v1"`
		V2 string  `json:"v2"`
	}
	for _, v := range load[input, expect](t, "annotation_keys") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "annotation_keys", v.Name) {
				return
			}
			body := plainBody()
			if v.Input.ReplicaSet {
				body = replicaSetOfDeployment()
			}
			current := storage.AnnotationsProgress{Prefix: v.Input.Prefix, WithoutV1: true}
			if got, want := recordKeys(t, current, body, v.Input.HandlerID), []string{v.Expect.V2}; !slices.Equal(got, want) {
				t.Errorf("%+v: got %q, want %q", v.Input, got, want)
			}
			both := storage.AnnotationsProgress{Prefix: v.Input.Prefix}
			want := []string{v.Expect.V2}
			if v.Expect.V1 != nil {
				want = append(want, *v.Expect.V1)
			}
			slices.Sort(want)
			if got := recordKeys(t, both, body, v.Input.HandlerID); !slices.Equal(got, want) {
				t.Errorf("%+v: got %q, want %q", v.Input, got, want)
			}
		})
	}
}

// recordKeys returns the sorted annotations that hold the handler's record.
func recordKeys(t *testing.T, progress storage.Progress, body *object.Body, handlerID string) []string {
	t.Helper()
	into := storage.Patch{}
	if err := progress.Store(t.Context(), body, into, handlerID, &storage.Record{}); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key, text := range patchedAnnotations(into) {
		if text != "yes" { // the marker of the prefix
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func patchedAnnotations(into storage.Patch) map[string]any {
	found, _ := object.Lookup(map[string]any(into), object.Path{"metadata", "annotations"})
	annotations, _ := found.(map[string]any)
	return annotations
}

func plainBody() *object.Body {
	return object.NewBody(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample"})
}

func replicaSetOfDeployment() *object.Body {
	return object.NewBody(map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "ReplicaSet",
		"metadata": map[string]any{
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u"}},
		},
	})
}
