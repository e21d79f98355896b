package conformance

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/storage"
)

func TestProgressRecords(t *testing.T) {
	type input struct {
		HandlerID string          `json:"handlerId"`
		Record    json.RawMessage `json:"record"`
	}
	type expect struct {
		Patch struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"patch"`
	}
	for _, v := range load[input, expect](t, "progress_records") {
		t.Run(v.Name, func(t *testing.T) {
			if excepted(t, "progress_records", v.Name) {
				return
			}
			var record storage.Record
			if err := json.Unmarshal(v.Input.Record, &record); err != nil {
				t.Fatal(err)
			}
			want := v.Expect.Patch.Metadata.Annotations
			body := plainBody()
			for key := range want {
				// Some were measured on an object that is not part of the input.
				if strings.HasSuffix(key, "-ofDRS") {
					body = replicaSetOfDeployment()
				}
			}
			into := storage.Patch{}
			if err := (storage.SmartProgress{}).Store(t.Context(), body, into, v.Input.HandlerID, &record); err != nil {
				t.Fatal(err)
			}
			got := patchedAnnotations(into)
			if len(into) != 1 || len(got) != len(want) {
				t.Errorf("got %v, want %v", into, want)
			}
			for key, text := range want {
				written, _ := got[key].(string)
				if written, text := fields(t, written), fields(t, text); !maps.EqualFunc(written, text, sameField) {
					t.Errorf("%s:\n got %v\nwant %v", key, written, text)
				}
			}
		})
	}
}

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := decode([]byte(text), &decoded); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return decoded
}

// sameField compares timestamps as instants, and everything else as JSON. The vectors contain
// timestamps in several forms, some without a fraction or a zone, which Kopf keeps. Here,
// records contain times, and their only form is the complete one, which every operator reads as
// the same instant.
func sameField(a, b any) bool {
	x, isTime := instant(a)
	y, isTimeToo := instant(b)
	if isTime && isTimeToo {
		return x.Equal(y)
	}
	return string(asJSON(a)) == string(asJSON(b))
}

func instant(value any) (time.Time, bool) {
	text, _ := value.(string)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			return parsed, true
		}
	}
	return time.Time{}, false
}

func asJSON(value any) []byte {
	data, _ := json.Marshal(value)
	return data
}
