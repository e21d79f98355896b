package storage_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

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
				if got, err := s.UnknownRecords(t.Context(), body, test.known); err != nil || !slices.Equal(got, test.want) {
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
	if got, _ := (storage.AnnotationsProgress{}).UnknownRecords(t.Context(), body, nil); !slices.Equal(got, []string{"own-ofDRS"}) {
		t.Errorf("got %q", got)
	}
	if got, _ := (storage.AnnotationsProgress{}).UnknownRecords(t.Context(), body, []string{"own"}); len(got) > 0 {
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
		if got, _ := s.UnknownRecords(t.Context(), body, []string{"fn"}); !slices.Equal(got, []string{"old"}) {
			t.Errorf("%s: got %q", kind, got)
		}
	}
}

func TestStoragesRemoveWhatTheyHaveStored(t *testing.T) {
	mine, others := "my-op.example.com/", "other.example.com/"
	annotations := map[string]any{
		mine + "last-handled-configuration": essence, mine + "last-handled-configuration-started": "{}",
		mine + "fn": open, mine + "renamed": open, mine + "touch-dummy": "2024", mine + "kopf-managed": "yes",
		mine + "text": "started", mine + "keep": `{"started":"yesterday"}`, // of people
		others + "fn": open, others + "kopf-managed": "yes", "kopf.zalando.org/fn": open,
	}
	body := object.NewBody(map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"status":   map[string]any{"kopf": map[string]any{"progress": map[string]any{"fn": map[string]any{}}, "last-handled-configuration": "{}", "last-handled-configuration-started": "{}", "x": 1}},
	})
	patch := storage.Patch{}
	storage.MultiDiffBase{storage.AnnotationsDiffBase{Prefix: mine[:len(mine)-1]}, storage.StatusDiffBase{}}.RemoveTraces(body, patch)
	storage.MultiProgress{storage.SmartProgress{Prefix: mine[:len(mine)-1]}}.RemoveTraces(body, patch)
	removed := patch["metadata"].(map[string]any)["annotations"].(map[string]any)
	want := []string{mine + "fn", mine + "kopf-managed", mine + "last-handled-configuration", mine + "last-handled-configuration-started", mine + "renamed", mine + "touch-dummy"}
	if got := slices.Sorted(maps.Keys(removed)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	status := patch["status"].(map[string]any)["kopf"].(map[string]any)
	if got := slices.Sorted(maps.Keys(status)); !slices.Equal(got, []string{"last-handled-configuration", "last-handled-configuration-started", "progress"}) {
		t.Errorf("got %q", got)
	}
	empty := storage.Patch{}
	storage.SmartProgress{}.RemoveTraces(object.NewBody(map[string]any{}), empty)
	storage.AnnotationsDiffBase{}.RemoveTraces(object.NewBody(map[string]any{}), empty)
	if len(empty) > 0 {
		t.Errorf("got %v for an object without state", empty)
	}
}

// elsewhere is a storage of another package.
type elsewhere struct{ storage.Progress }

// external is one that hears when objects are gone.
type external struct {
	storage.Progress
	err    error
	erased *[]types.UID
}

func (e external) Erase(_ context.Context, body *object.Body) error {
	*e.erased = append(*e.erased, body.UID())
	return e.err
}

func TestStoragesThatRemoveNothingAreNamed(t *testing.T) {
	progress := storage.MultiProgress{storage.SmartProgress{}, elsewhere{}, external{}}
	if got := storage.Irremovable(storage.MultiDiffBase{storage.StatusDiffBase{}}, progress); !slices.Equal(got, []string{"storage_test.elsewhere"}) {
		t.Errorf("got %q", got)
	}
}

func TestStoragesWithinOthersErase(t *testing.T) {
	var first, second []types.UID
	failure := errors.New("the database is down")
	both := storage.MultiProgress{external{err: failure, erased: &first}, storage.SmartProgress{}, storage.MultiProgress{external{erased: &second}}}
	body := object.NewBody(map[string]any{"metadata": map[string]any{"uid": "u-1"}})
	if err := both.Erase(t.Context(), body); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	want := []types.UID{"u-1"}
	if !slices.Equal(first, want) || !slices.Equal(second, want) {
		t.Errorf("got %v and %v", first, second)
	}
	if got := storage.Erasers(storage.MultiDiffBase{storage.AnnotationsDiffBase{}}, both); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if err := (storage.MultiDiffBase{storage.AnnotationsDiffBase{}}).Erase(t.Context(), body); err != nil {
		t.Error(err)
	}
}
