package conformance

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestEssence(t *testing.T) {
	type input struct {
		Body          map[string]any `json:"body"`
		ExtraFields   []string       `json:"extraFields"`
		IgnoredFields []string       `json:"ignoredFields"`
	}
	type expect struct {
		Essence           map[string]any    `json:"essence"`
		StoredAnnotations map[string]string `json:"storedAnnotations"`
	}
	for _, v := range load[input, expect](t, "essence") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "essence", v.Name) {
				return
			}
			body := object.NewBody(v.Input.Body)
			base := storage.AnnotationsDiffBase{IgnoredFields: paths(t, v.Input.IgnoredFields)}
			essence := base.Build(body, paths(t, v.Input.ExtraFields))
			essence = storage.SmartProgress{}.Clear(essence)
			sameDocument(t, "essence", essence, v.Expect.Essence)

			into := storage.Patch{}
			if err := base.Store(t.Context(), body, into, essence); err != nil {
				t.Fatal(err)
			}
			sameAnnotations(t, into, v.Expect.StoredAnnotations)
		})
	}
}

func paths(t *testing.T, dotted []string) []object.Path {
	t.Helper()
	var parsed []object.Path
	for _, field := range dotted {
		path, err := object.ParsePath(field)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, path)
	}
	return parsed
}

// sameDocument compares exactly: a null differs from an absent value.
func sameDocument(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// sameAnnotations compares the written annotations with the measured ones. It compares JSON by
// value, because the order of keys and the escaping are free, but not the final line break.
func sameAnnotations(t *testing.T, into storage.Patch, want map[string]string) {
	t.Helper()
	got := patchedAnnotations(into)
	if len(got) != len(want) {
		t.Errorf("annotations: got %v, want %v", got, want)
	}
	for key, text := range want {
		written, _ := got[key].(string)
		if strings.HasSuffix(text, "\n") != strings.HasSuffix(written, "\n") {
			t.Errorf("%s: the line break at the end differs: got %q, want %q", key, written, text)
		}
		if !reflect.DeepEqual(jsonOrText(written), jsonOrText(text)) {
			t.Errorf("%s:\n got %s\nwant %s", key, written, text)
		}
	}
}

func jsonOrText(text string) any {
	var decoded any
	if err := decode([]byte(text), &decoded); err != nil {
		return text
	}
	return decoded
}
