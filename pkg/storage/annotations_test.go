package storage_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestAnnotationsDiffBaseKeepsTheBase(t *testing.T) {
	ctx := t.Context()
	base := storage.AnnotationsDiffBase{}
	body := annotated(map[string]string{"note": "<&>", "example.com/unï": "日本"})
	if essence, err := base.Fetch(ctx, body); essence != nil || err != nil {
		t.Fatalf("got a base of an object that was never handled: %v, %v", essence, err)
	}

	essence := base.Build(body, nil)
	patch := storage.Patch{}
	noError(t, base.Store(ctx, body, patch, essence))
	text, _ := object.Lookup(map[string]any(patch), object.Path{"metadata", "annotations", baseKey})
	want := `{"metadata":{"annotations":{"example.com/unï":"日本","note":"<&>"}},"spec":{"size":1}}` + "\n"
	if text != want {
		t.Errorf("got %q, want %q", text, want)
	}

	body = applied(body, patch)
	fetched, err := base.Fetch(ctx, body)
	noError(t, err)
	if !reflect.DeepEqual(fetched, essence) {
		t.Errorf("got %v, want %v", fetched, essence)
	}
	if again := base.Build(body, nil); !reflect.DeepEqual(again, essence) {
		t.Errorf("storing the base counts as a change: %v", again)
	}
	patch = storage.Patch{}
	noError(t, base.Store(ctx, body, patch, essence))
	nothing(t, patch)
}

func TestAnnotationsDiffBaseDropsIgnoredFieldsOfStoredBase(t *testing.T) {
	body := annotated(map[string]string{baseKey: `{"spec": {"size": 1, "old": 2}}`})
	base := storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "size"}, {"metadata"}}}
	fetched, err := base.Fetch(t.Context(), body)
	noError(t, err)
	if want := decoded(t, `{"spec": {"old": 2}}`); !reflect.DeepEqual(fetched, want) {
		t.Errorf("got %v, want %v", fetched, want)
	}
}

func TestBrokenBasesAreReported(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":           `sesame`,
		"an empty text":      ``,
		"a JSON list":        `["sesame"]`,
		"a JSON string":      `"sesame"`,
		"two values":         `{} {}`,
		"an unknown version": `{"kopf-hashed": 2, "sesame": 1}`,
		"a bad version":      `{"kopf-hashed": {}}`,
		"a bad mapping":      `{"kopf-hashed": 1, "known": "sesame"}`,
		"a bad hash":         `{"kopf-hashed": 1, "hashed": {"spec": {"a": "short"}}}`,
		"a hash in a list":   `{"kopf-hashed": 1, "hashed": {"spec": ["sesame"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := annotated(map[string]string{baseKey: text, cycleKey: text})
			essence, err := storage.AnnotationsDiffBase{}.Fetch(t.Context(), body)
			assertBroken(t, err, baseKey)
			if essence != nil {
				t.Errorf("got %v", essence)
			}
			_, err = storage.AnnotationsDiffBase{}.FetchCycle(t.Context(), body)
			assertBroken(t, err, cycleKey)
		})
	}
	t.Run("a null is read as no base", func(t *testing.T) {
		essence, err := storage.AnnotationsDiffBase{}.Fetch(t.Context(), annotated(map[string]string{baseKey: "null\n"}))
		if essence != nil || err != nil {
			t.Errorf("got %v, %v", essence, err)
		}
	})
}

func assertBroken(t *testing.T, err error, where string) {
	t.Helper()
	var broken *storage.BrokenError
	if !errors.As(err, &broken) || !storage.IsBroken(err) || errors.Unwrap(err) == nil {
		t.Fatalf("got %v, want a BrokenError", err)
	}
	if message := err.Error(); !strings.Contains(message, where) || strings.Contains(message, "sesame") {
		t.Errorf("the message must name the location and must not quote the value: %s", message)
	}
}

func TestStoredCycleIsNotAChange(t *testing.T) {
	for name, base := range map[string]storage.AnnotationsDiffBase{
		"with the default prefix":          {},
		"with a custom prefix":             {Prefix: "my-op.example.com"},
		"with a prefix that is not marked": {Prefix: "kopf.dev", Key: "k"},
		"with a subdomain of the default":  {Prefix: "sub.kopf.zalando.org"},
		"with a very long name":            {Prefix: strings.Repeat("x", 189), Key: strings.Repeat("y", 63)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			body := annotated(map[string]string{"note": "text"})
			essence := base.Build(body, nil)
			if cycle, err := base.FetchCycle(ctx, body); cycle != nil || err != nil {
				t.Fatalf("got %v, %v", cycle, err)
			}

			patch := storage.Patch{}
			noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
			open := applied(body, patch)
			if cycle, err := base.FetchCycle(ctx, open); err != nil || !reflect.DeepEqual(cycle, &storage.Cycle{Token: "1", First: essence}) {
				t.Errorf("got %v, %v", cycle, err)
			}
			if handled, err := base.Fetch(ctx, open); handled != nil || err != nil {
				t.Errorf("the open cycle is read as a handled state: %v, %v", handled, err)
			}
			// Check what every operator leaves out, and what this storage leaves out of a
			// field that is requested as a whole.
			if seen := storage.BuildEssence(open, nil); !reflect.DeepEqual(seen, essence) {
				t.Errorf("other operators see a change: %v", seen)
			}
			everything := base.Build(open, []object.Path{{"metadata", "annotations"}})
			keys := annotationsIn(everything)
			if slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, "-started") }) {
				t.Errorf("the operator's own essence contains the cycle: %v", keys)
			}

			patch = storage.Patch{}
			noError(t, base.StoreCycle(ctx, open, patch, &storage.Cycle{Token: "1", First: essence}))
			nothing(t, patch)
			noError(t, base.PurgeCycle(ctx, open, patch))
			if cycle, err := base.FetchCycle(ctx, applied(open, patch)); cycle != nil || err != nil {
				t.Errorf("got %v, %v", cycle, err)
			}
			patch = storage.Patch{}
			noError(t, base.PurgeCycle(ctx, body, patch))
			nothing(t, patch)
		})
	}
}

func annotationsIn(essence map[string]any) []string {
	var keys []string
	found, _ := object.Lookup(essence, object.Path{"metadata", "annotations"})
	annotations, _ := found.(map[string]any)
	for key := range annotations {
		keys = append(keys, key)
	}
	return keys
}

func TestReplicaSetsDoNotReadTheirDeployments(t *testing.T) {
	ctx := t.Context()
	body := bodyOf(t, `{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {
		"ownerReferences": [{"kind": "Deployment"}],
		"annotations": {"kopf.zalando.org/last-handled-configuration": "{\"of\":\"deployment\"}", "kopf.zalando.org/fn": "{\"retries\":1}"}}}`)
	base, progress := storage.AnnotationsDiffBase{}, storage.SmartProgress{}
	if essence, err := base.Fetch(ctx, body); essence != nil || err != nil {
		t.Errorf("got %v, %v", essence, err)
	}
	if record, err := progress.Fetch(ctx, body, "fn"); record != nil || err != nil {
		t.Errorf("got %+v, %v", record, err)
	}
	patch := storage.Patch{}
	noError(t, base.Store(ctx, body, patch, base.Build(body, nil)))
	noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: base.Build(body, nil)}))
	noError(t, progress.Store(ctx, body, patch, "<fn>/x", &storage.Record{}))
	keys := slices.Sorted(slices.Values(annotationsIn(patch)))
	want := []string{"kopf.zalando.org/_fn_.x-ofDRS", baseKey + "-ofDRS", cycleKey + "-ofDRS"}
	if !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
}
