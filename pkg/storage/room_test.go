package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestBaseLeavesRoomForOtherAnnotations(t *testing.T) {
	const limit = 256 << 10
	for name, test := range map[string]struct {
		others, base int
		want         storage.HashReason
	}{
		"a base that fits is not hashed":            {100_000, 150_000, storage.NotHashed},
		"a base that does not fit is hashed":        {100_000, 170_000, storage.HashedSize},
		"a base that would leave no room is hashed": {100_000, limit - 100_000 - 500, storage.HashedSize},
		"a small base among large others is hashed": {limit - 5000, 1000, storage.HashedSize},
		"a large base on its own is not hashed":     {0, 200_000, storage.NotHashed},
		"a small base fits into the last bytes":     {limit - 1024, 30, storage.NotHashed},
		"hashes fit into very little room":          {limit - 4400, 10_000, storage.HashedSize},
	} {
		t.Run(name, func(t *testing.T) {
			body := annotated(map[string]string{"note": strings.Repeat("x", test.others)})
			patch := storage.Patch{}
			patch.Set(object.Path{"metadata", "annotations", "note2"}, "xx")
			essence := decoded(t, `{"spec": {"long": "`+strings.Repeat("y", test.base)+`"}}`)
			base := storage.AnnotationsDiffBase{}
			if got := base.Hashes(body, patch, essence); got != test.want {
				t.Errorf("hashed because of %q, want %q", got, test.want)
			}
			noError(t, base.Store(t.Context(), body, patch, essence))
			total := 0
			for key, text := range applied(body, patch).Annotations() {
				total += len(key) + len(text)
			}
			if total > limit {
				t.Errorf("%d bytes of annotations", total)
			}
		})
	}
	t.Run("annotations that the patch removes are not counted", func(t *testing.T) {
		body := annotated(map[string]string{"note": strings.Repeat("x", 200_000)})
		patch := storage.Patch{}
		patch.Set(object.Path{"metadata", "annotations", "note"}, nil)
		essence := map[string]any{"spec": strings.Repeat("y", 200_000)}
		if got := (storage.AnnotationsDiffBase{}).Hashes(body, patch, essence); got != storage.NotHashed {
			t.Errorf("hashed because of %q", got)
		}
	})
	t.Run("no room results in an error with the remedy", func(t *testing.T) {
		body := annotated(map[string]string{"note": strings.Repeat("x", limit)})
		patch := storage.Patch{}
		err := storage.AnnotationsDiffBase{}.Store(t.Context(), body, patch, map[string]any{"spec": int64(1)})
		if err == nil || !strings.Contains(err.Error(), "remove other annotations of the object, by at least 58 bytes") {
			t.Errorf("got %v", err)
		}
		nothing(t, patch)
	})
}

func TestHugeEssencesCollapse(t *testing.T) {
	wide, deep := map[string]any{}, map[string]any{}
	for i := range 5_000 {
		wide[fmt.Sprint("key", i)] = fmt.Sprint("value", i)
	}
	for i := range 100 {
		deep = map[string]any{fmt.Sprint("level", i): deep, "text": strings.Repeat("x", 2000)}
	}
	essence := map[string]any{
		"data": wide, "deep": deep, "spec": map[string]any{"size": int64(1)},
		"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
	}
	fetched, text, reason := roundTrip(t, annotated(nil), essence)
	if reason != storage.HashedSize || len(text) > 16<<10 {
		t.Errorf("%d bytes because of %q", len(text), reason)
	}
	if changes := differences(fetched, essence); changes != nil {
		t.Errorf("got changes of an unchanged object at %q", changes)
	}
	changed := runtime.DeepCopyJSON(essence)
	changed["data"].(map[string]any)["null"] = nil
	if changes := differences(fetched, changed); changes != nil {
		t.Errorf("a null counts as a change at %q", changes)
	}
	changed["data"].(map[string]any)["key77"] = "changed"
	changed["spec"].(map[string]any)["size"] = int64(2)
	delete(changed["deep"].(map[string]any), "text")
	want := []string{"data", "deep.text", "spec.size"}
	if changes := differences(fetched, changed); !slices.Equal(changes, want) {
		t.Errorf("got changes at %q, want %q", changes, want)
	}
}

func BenchmarkHashedComparison(b *testing.B) {
	essence := map[string]any{"spec": map[string]any{"long": strings.Repeat("x", 200_000)}}
	for i := range 100 {
		essence[fmt.Sprint("key", i)] = strings.Repeat("y", 1000)
	}
	fetched, _, _ := roundTrip(b, annotated(nil), essence)
	b.ReportAllocs()
	for b.Loop() {
		if differences(fetched, essence) != nil {
			b.Fatal("it differs")
		}
	}
}

func BenchmarkEncodeBase(b *testing.B) {
	body := bodyOf(b, `{"spec": {"size": 1, "items": [1, 2, 3], "template": {"a": {"b": {"c": "text"}}}}, "metadata": {"labels": {"a": "b"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = storage.EncodeBase(body, body.Raw(), 100_000)
	}
}
