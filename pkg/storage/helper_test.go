package storage_test

import (
	"maps"
	"testing"

	"sigs.k8s.io/json"

	"github.com/kopf-go/kopf/pkg/model/diff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

const (
	baseKey  = "kopf.zalando.org/last-handled-configuration"
	cycleKey = "kopf.zalando.org/last-handled-configuration-started"
)

// bodyOf decodes a body.
func bodyOf(t testing.TB, text string) *object.Body {
	t.Helper()
	return object.NewBody(decoded(t, text))
}

func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	var raw map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	return raw
}

// annotated returns a body with the annotations.
func annotated(annotations map[string]string) *object.Body {
	values := map[string]any{}
	for key, text := range annotations {
		values[key] = text
	}
	return object.NewBody(map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"uid": "uid1", "annotations": values},
		"spec":     map[string]any{"size": int64(1)},
	})
}

// applied returns the body after the API server has merged the patch.
func applied(body *object.Body, patch storage.Patch) *object.Body {
	return object.NewBody(merged(body.Raw(), patch))
}

func merged(target map[string]any, patch map[string]any) map[string]any {
	result := maps.Clone(target)
	if result == nil {
		result = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(result, key)
		case map[string]any:
			inner, _ := result[key].(map[string]any)
			result[key] = merged(inner, value)
		default:
			result[key] = value
		}
	}
	return result
}

// differences returns the paths at which two essences differ. Old values may be known
// only by hashes.
func differences(before, after object.Essence) []string {
	var paths []string
	for _, item := range diff.Compute(before, after, diff.Full) {
		paths = append(paths, item.Path.String())
	}
	return paths
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nothing checks that a patch would write nothing.
func nothing(t testing.TB, patch storage.Patch) {
	t.Helper()
	if len(patch) != 0 {
		t.Errorf("a useless write: %v", patch)
	}
}
