package storage_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

const secretJSON = `{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"password": "c2VzYW1l", "same": "c2VzYW1l"},
	"metadata": {"uid": "uid1", "labels": {"app": "a"}}}`

// roundTrip stores the base on the object, and returns it as it is fetched again.
func roundTrip(t testing.TB, body *object.Body, essence object.Essence) (object.Essence, string, storage.HashReason) {
	t.Helper()
	base, patch := storage.AnnotationsDiffBase{}, storage.Patch{}
	reason := base.Hashes(body, patch, essence)
	noError(t, base.Store(t.Context(), body, patch, essence))
	if after := base.Hashes(body, patch, essence); after != reason {
		t.Errorf("hashed because of %q before the store and %q after it", reason, after)
	}
	handled := applied(body, patch)
	text, _ := handled.Annotation(baseKey)
	fetched, err := base.Fetch(t.Context(), handled)
	noError(t, err)
	patch = storage.Patch{}
	noError(t, base.Store(t.Context(), handled, patch, essence))
	nothing(t, patch)
	return fetched, text, reason
}

func TestSecretsAreHashed(t *testing.T) {
	body := bodyOf(t, secretJSON)
	essence := storage.BuildEssence(body, nil)
	fetched, text, reason := roundTrip(t, body, essence)
	if reason != storage.HashedSecret || strings.Contains(text, "c2VzYW1l") {
		t.Errorf("the data is in %s because of %q", text, reason)
	}
	var envelope struct {
		Version int                          `json:"kopf-hashed"`
		Known   map[string]any               `json:"known"`
		Hashed  map[string]map[string]string `json:"hashed"`
	}
	noError(t, json.Unmarshal([]byte(text), &envelope))
	if want := decoded(t, `{"type": "Opaque", "metadata": {"labels": {"app": "a"}}}`); envelope.Version != 1 || !reflect.DeepEqual(envelope.Known, want) {
		t.Errorf("got %s", text)
	}
	if data := envelope.Hashed["data"]; len(data) != 2 || data["password"] == data["same"] {
		t.Errorf("equal values have equal hashes: %v", data)
	}
	if shown := fmt.Sprint(fetched["data"]); shown != "map[password:(unknown) same:(unknown)]" {
		t.Errorf("people see %s", shown)
	}
	if typed, err := json.Marshal(fetched["data"]); err != nil || string(typed) != `{"password":null,"same":null}` {
		t.Errorf("typed objects see %s, %v", typed, err)
	}
	if changes := differences(fetched, essence); changes != nil {
		t.Errorf("got changes of an unchanged object at %q", changes)
	}
}

func TestOtherSecretsAreNotHashed(t *testing.T) {
	for name, text := range map[string]string{
		"of another group": `{"apiVersion": "example.com/v1", "kind": "Secret", "data": {"password": "open sesame"}}`,
		"without data":     `{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {}, "stringData": null}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := bodyOf(t, text)
			essence := storage.BuildEssence(body, nil)
			if fetched, _, reason := roundTrip(t, body, essence); reason != storage.NotHashed || !reflect.DeepEqual(fetched, essence) {
				t.Errorf("got %v because of %q", fetched, reason)
			}
		})
	}
}

func TestHashedBaseShowsChanges(t *testing.T) {
	long := strings.Repeat("long ", 60_000)
	for name, test := range map[string]struct {
		change func(essence map[string]any)
		want   []string
	}{
		"none":                 {func(map[string]any) {}, nil},
		"of a long value":      {func(e map[string]any) { e["spec"].(map[string]any)["long"] = long + "!" }, []string{"spec.long"}},
		"of a short value":     {func(e map[string]any) { e["spec"].(map[string]any)["short"] = int64(2) }, []string{"spec.short"}},
		"that adds a field":    {func(e map[string]any) { e["spec"].(map[string]any)["added"] = long }, []string{"spec.added"}},
		"that removes a field": {func(e map[string]any) { delete(e["spec"].(map[string]any), "long") }, []string{"spec.long"}},
		"of an item in a list": {func(e map[string]any) { e["items"].([]any)[0] = "x" }, []string{"items"}},
		"of nothing but nulls": {func(e map[string]any) { e["items"].([]any)[1].(map[string]any)["null"] = nil }, nil},
		"of a number's form":   {func(e map[string]any) { e["items"].([]any)[1].(map[string]any)["n"] = 1.0 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			essence := map[string]any{
				"spec":  map[string]any{"long": long, "short": int64(1), "null": nil, "empty": map[string]any{}},
				"items": []any{long, map[string]any{"n": int64(1)}},
			}
			fetched, text, reason := roundTrip(t, annotated(nil), essence)
			if reason != storage.HashedSize || len(text) > 300 {
				t.Errorf("%d bytes because of %q", len(text), reason)
			}
			changed := runtime.DeepCopyJSON(essence)
			test.change(changed)
			if got := differences(fetched, changed); !slices.Equal(got, test.want) {
				t.Errorf("got changes at %q, want %q", got, test.want)
			}
		})
	}
}
