package storage_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

const longID = "update_fn/spec.template.spec.containers.resources.limits.memory"

func TestProgressKeepsRecords(t *testing.T) {
	for name, progress := range map[string]storage.Progress{
		"in annotations":                   storage.AnnotationsProgress{},
		"in annotations of another prefix": storage.AnnotationsProgress{Prefix: "my-op.example.com", Verbose: true},
		"in annotations without version 1": storage.AnnotationsProgress{WithoutV1: true},
		"in the status":                    storage.StatusProgress{},
		"in another field":                 storage.StatusProgress{Field: object.Path{"spec", "handling"}},
		"in both":                          storage.MultiProgress{storage.StatusProgress{}, storage.AnnotationsProgress{}},
		"by default":                       storage.SmartProgress{},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			body := annotated(nil)
			for _, id := range []string{"create_fn", "create_fn/sub", longID} {
				if record, err := progress.Fetch(ctx, body, id); record != nil || err != nil {
					t.Fatalf("got %+v, %v", record, err)
				}
				first := &storage.Record{Started: noon, Delayed: noon, Retries: 1, Message: "<m>", Subrefs: []string{"create_fn/sub"}}
				body = stored(t, progress, body, id, first)
				last := &storage.Record{Started: noon, Stopped: noon, Retries: 2, Success: true}
				body = stored(t, progress, body, id, last)

				clean := progress.Clear(storage.BuildEssence(body, []object.Path{{"status"}, {"metadata", "annotations"}}))
				if want := decoded(t, `{"spec": {"size": 1}}`); !reflect.DeepEqual(storage.Without(clean, object.Path{"metadata"}), want) {
					t.Errorf("progress counts as a change: %v", clean)
				}
			}
			for _, id := range []string{"create_fn", "create_fn/sub", longID} {
				patch := storage.Patch{}
				noError(t, progress.Purge(ctx, body, patch, id))
				body = applied(body, patch)
				if record, err := progress.Fetch(ctx, body, id); record != nil || err != nil {
					t.Errorf("after the purge: %+v, %v", record, err)
				}
				patch = storage.Patch{}
				noError(t, progress.Purge(ctx, body, patch, id))
				nothing(t, patch)
			}
		})
	}
}

// stored returns the body after the record was stored. It checks that the same record is
// fetched, and that storing it again writes nothing.
func stored(t *testing.T, progress storage.Progress, body *object.Body, id string, record *storage.Record) *object.Body {
	t.Helper()
	patch := storage.Patch{}
	noError(t, progress.Store(t.Context(), body, patch, id, record))
	body = applied(body, patch)
	got, err := progress.Fetch(t.Context(), body, id)
	if err != nil || !sameRecord(*got, *record) {
		t.Fatalf("got %+v, %v, want %+v", got, err, record)
	}
	patch = storage.Patch{}
	noError(t, progress.Store(t.Context(), body, patch, id, record))
	nothing(t, patch)
	return body
}

func TestPurgeDropsPendingWrites(t *testing.T) {
	for name, progress := range map[string]storage.Progress{
		"annotations": storage.AnnotationsProgress{}, "status": storage.StatusProgress{}, "default": storage.SmartProgress{},
	} {
		t.Run(name, func(t *testing.T) {
			body, patch := annotated(nil), storage.Patch{}
			noError(t, progress.Store(t.Context(), body, patch, longID, &storage.Record{}))
			noError(t, progress.Purge(t.Context(), body, patch, longID))
			nothing(t, patch)
		})
	}
}

func TestStoreAfterPurgeInOnePatchWins(t *testing.T) {
	for name, progress := range map[string]storage.Progress{
		"annotations": storage.AnnotationsProgress{}, "status": storage.StatusProgress{},
	} {
		t.Run(name, func(t *testing.T) {
			record := &storage.Record{Started: noon, Retries: 1}
			body := stored(t, progress, annotated(nil), "fn", record)
			patch := storage.Patch{}
			noError(t, progress.Purge(t.Context(), body, patch, "fn"))
			noError(t, progress.Store(t.Context(), body, patch, "fn", record))
			nothing(t, patch)
		})
	}
}

func TestSmartProgressReadsTheStatusAndLeavesItAlone(t *testing.T) {
	ctx := t.Context()
	body := bodyOf(t, `{"status": {"kopf": {"progress": {"fn": {"started": "2024-02-14T12:00:00.123456", "retries": 5}}}}}`)
	progress := storage.SmartProgress{}
	record, err := progress.Fetch(ctx, body, "fn")
	if err != nil || record.Retries != 5 || !record.Started.Equal(noon) {
		t.Fatalf("got %+v, %v", record, err)
	}
	patch := storage.Patch{}
	noError(t, progress.Store(ctx, body, patch, "fn", record))
	if _, written := patch["status"]; written {
		t.Errorf("the status was written: %v", patch)
	}
	patch = storage.Patch{}
	noError(t, progress.Purge(ctx, body, patch, "fn"))
	if want := (storage.Patch{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{"fn": nil}}}}); !reflect.DeepEqual(patch, want) {
		t.Errorf("got %v, want %v", patch, want)
	}
}

func TestBrokenProgress(t *testing.T) {
	const key = "kopf.zalando.org/fn"
	for name, test := range map[string]struct {
		progress storage.Progress
		body     *object.Body
		where    string
	}{
		"an annotation":       {storage.AnnotationsProgress{}, annotated(map[string]string{key: "sesame"}), key},
		"an empty annotation": {storage.AnnotationsProgress{}, annotated(map[string]string{key: ""}), key},
		"a wrong type":        {storage.SmartProgress{}, annotated(map[string]string{key: `{"started": "sesame"}`}), key},
		"a status field":      {storage.StatusProgress{}, bodyOf(t, `{"status": {"kopf": {"progress": {"fn": "sesame"}}}}`), "status.kopf.progress.fn"},
		"several":             {storage.MultiProgress{storage.StatusProgress{}, storage.AnnotationsProgress{}}, annotated(map[string]string{key: "[]"}), key},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := test.progress.Fetch(t.Context(), test.body, "fn")
			assertBroken(t, err, test.where)
			if record != nil {
				t.Errorf("got %+v", record)
			}
		})
	}
	t.Run("is ignored if the same record can be read elsewhere", func(t *testing.T) {
		body := bodyOf(t, `{"metadata": {"annotations": {"kopf.zalando.org/fn": "sesame"}},
			"status": {"kopf": {"progress": {"fn": {"retries": 3}}}}}`)
		record, err := storage.SmartProgress{}.Fetch(t.Context(), body, "fn")
		if err != nil || record.Retries != 3 {
			t.Errorf("got %+v, %v", record, err)
		}
	})
}

func TestEarlyAnnotationsAreReadAndRemoved(t *testing.T) {
	progress := storage.AnnotationsProgress{}
	patch := storage.Patch{}
	noError(t, progress.Store(t.Context(), annotated(nil), patch, longID, &storage.Record{Retries: 3}))
	body := applied(annotated(nil), patch)
	keys := annotationsIn(body.Raw())
	if len(keys) != 2 {
		t.Fatalf("got %q, want the current key and the early one", keys)
	}
	current := slices.MaxFunc(keys, func(a, b string) int { return len(a) - len(b) })
	patch = storage.Patch{}
	patch.Set(object.Path{"metadata", "annotations", current}, nil)
	body = applied(body, patch)
	record, err := progress.Fetch(t.Context(), body, longID)
	if err != nil || record.Retries != 3 {
		t.Errorf("got %+v, %v", record, err)
	}
	patch = storage.Patch{}
	noError(t, storage.AnnotationsProgress{WithoutV1: true}.Purge(t.Context(), body, patch, longID))
	if left := annotationsIn(applied(body, patch).Raw()); len(left) != 0 {
		t.Errorf("%q left", left)
	}
}

func TestClearReturnsTheSameEssenceIfItIsClean(t *testing.T) {
	essence := decoded(t, `{"spec": {}, "metadata": {"annotations": {"note": "text"}}}`)
	for name, progress := range map[string]storage.Progress{
		"annotations": storage.AnnotationsProgress{}, "status": storage.StatusProgress{}, "default": storage.SmartProgress{},
	} {
		t.Run(name, func(t *testing.T) {
			if got := progress.Clear(essence); reflect.ValueOf(got).Pointer() != reflect.ValueOf(essence).Pointer() {
				t.Error("it was copied")
			}
		})
	}
	left := storage.AnnotationsProgress{}.Clear(decoded(t, `{"metadata": {"annotations": {"note": "text", "kopf.zalando.org/x": "1"}}}`))
	if want := decoded(t, `{"metadata": {"annotations": {"note": "text"}}}`); !reflect.DeepEqual(left, want) {
		t.Errorf("got %v, want %v", left, want)
	}
}

func TestStoragesSayWhetherTheyStoreInTheStatus(t *testing.T) {
	elsewhere := object.Path{"spec", "handling"}
	for name, test := range map[string]struct {
		storage storage.InStatus
		want    bool
	}{
		"records":                               {storage.StatusProgress{}, true},
		"records in another field":              {storage.StatusProgress{Field: elsewhere}, false},
		"a cycle":                               {storage.StatusDiffBase{}, true},
		"a cycle in another field":              {storage.StatusDiffBase{Field: elsewhere}, false},
		"records in annotations and the status": {storage.MultiProgress{storage.AnnotationsProgress{}, storage.StatusProgress{}}, false},
		"records in annotations":                {storage.MultiProgress{storage.AnnotationsProgress{}, storage.SmartProgress{}}, false},
		"records in several fields":             {storage.MultiProgress{storage.StatusProgress{}, storage.StatusProgress{Field: object.Path{"status", "x"}}}, true},
		"no records":                            {storage.MultiProgress{}, false},
		"a cycle in the first of two places":    {storage.MultiDiffBase{storage.StatusDiffBase{}, storage.AnnotationsDiffBase{}}, true},
		"a cycle that is not in the second one": {storage.MultiDiffBase{storage.AnnotationsDiffBase{}, storage.StatusDiffBase{}}, false},
		"no cycle":                              {storage.MultiDiffBase{}, false},
	} {
		if got := test.storage.StoresInStatus(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
