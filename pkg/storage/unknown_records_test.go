package storage_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

const (
	open    = `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create","retries":1}`
	early   = `{"started":"2020-02-14T16:58:25.396364","retries":1,"success":false}`
	parent  = `{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create","subrefs":["%s","%s"]}`
	essence = `{"spec":{"started":"2024-02-14T16:58:25.396364+00:00","purpose":"create"},"started":"2024-02-14T16:58:25.396364+00:00"}`
)

func TestUnknownRecordsInAnnotations(t *testing.T) {
	long := strings.Repeat("long", 20)
	tests := map[string]struct {
		annotations map[string]string
		known       []string
		want        []string
	}{
		"none":                           {map[string]string{"last-handled-configuration": essence, "touch-dummy": "2024", "kopf-managed": "yes", "text": "started"}, nil, nil},
		"a renamed handler":              {map[string]string{"old_fn": open, "fn": open}, []string{"fn"}, []string{"old_fn"}},
		"an early record":                {map[string]string{"old_fn": early}, []string{"fn"}, []string{"old_fn"}},
		"another prefix":                 {map[string]string{"../example.com/old_fn": open}, nil, nil},
		"a field handler":                {map[string]string{"fn.spec.size": open}, []string{"fn/spec.size"}, nil},
		"the sub-handlers of a known":    {map[string]string{"fn": open, "fn.a": open}, []string{"fn"}, nil},
		"the sub-handlers of an unknown": {map[string]string{"old": fmt.Sprintf(parent, "a/b", "c"), "a.b": open, "c": open, "old.d": open, "e": open}, nil, []string{"e", "old"}},
		"a long id":                      {map[string]string{nameOf(t, long): open}, []string{long}, nil},
		"an unreadable record":           {map[string]string{"old_fn": `{"started":"yesterday","purpose":"create"}`}, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]any{}
			for name, text := range test.annotations {
				annotations[strings.TrimPrefix("kopf.zalando.org/"+name, "kopf.zalando.org/../")] = text
			}
			body := object.NewBody(map[string]any{"metadata": map[string]any{"annotations": annotations}})
			for kind, s := range map[string]storage.RecordLister{"annotations": storage.AnnotationsProgress{}, "smart": storage.SmartProgress{}} {
				if got := s.UnknownRecords(body, test.known); !slices.Equal(got, test.want) {
					t.Errorf("%s: got %q", kind, got)
				}
			}
		})
	}
}

// nameOf returns the name of the annotation of a handler.
func nameOf(t *testing.T, id string) string {
	t.Helper()
	into := storage.Patch{}
	if err := (storage.AnnotationsProgress{}).Store(t.Context(), object.NewBody(map[string]any{}), into, id, &storage.Record{}); err != nil {
		t.Fatal(err)
	}
	annotations := into["metadata"].(map[string]any)["annotations"].(map[string]any)
	return strings.TrimPrefix(slices.Collect(maps.Keys(annotations))[0], "kopf.zalando.org/")
}

func TestUnknownRecordsOfAReplicaSetAreNotThoseOfItsDeployment(t *testing.T) {
	body := bodyOf(t, `{"kind": "ReplicaSet", "metadata": {"ownerReferences": [{"kind": "Deployment"}], "annotations": {
		"kopf.zalando.org/of_deployment": "{\"started\":\"2024-02-14T16:58:25Z\",\"purpose\":\"create\"}",
		"kopf.zalando.org/own-ofDRS": "{\"started\":\"2024-02-14T16:58:25Z\",\"purpose\":\"create\"}"}}}`)
	if got := (storage.AnnotationsProgress{}).UnknownRecords(body, nil); !slices.Equal(got, []string{"own-ofDRS"}) {
		t.Errorf("got %q", got)
	}
	if got := (storage.AnnotationsProgress{}).UnknownRecords(body, []string{"own"}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

func TestUnknownRecordsInTheStatus(t *testing.T) {
	body := bodyOf(t, `{"status": {"kopf": {"progress": {
		"fn": {"started": "2024-02-14T16:58:25Z", "purpose": "create"},
		"fn/a": {"started": "2024-02-14T16:58:25Z", "purpose": "create"},
		"old": {"started": "2024-02-14T16:58:25Z", "purpose": "create", "subrefs": ["b"]},
		"b": {"started": "2024-02-14T16:58:25Z", "purpose": "create"},
		"note": "text"
	}}}}`)
	for kind, s := range map[string]storage.RecordLister{
		"status": storage.StatusProgress{}, "smart": storage.SmartProgress{},
		"several": storage.MultiProgress{storage.StatusProgress{}, storage.SmartProgress{}},
	} {
		if got := s.UnknownRecords(body, []string{"fn"}); !slices.Equal(got, []string{"old"}) {
			t.Errorf("%s: got %q", kind, got)
		}
	}
}
