package storage_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

var errUnreachable = errors.New("the database cannot be reached")

// unreachable is a failing storage outside the object.
type unreachable struct{ storage.SmartProgress }

func (unreachable) Fetch(context.Context, *object.Body, string) (*storage.Record, error) {
	return nil, errUnreachable
}

func (unreachable) Store(context.Context, *object.Body, storage.Patch, string, *storage.Record) error {
	return errUnreachable
}

// foreign is a failing storage of another package.
type foreign struct{}

func (foreign) Build(body *object.Body, extra []object.Path) object.Essence {
	return storage.Without(storage.BuildEssence(body, extra), object.Path{"spec", "foreign"})
}

func (foreign) Fetch(context.Context, *object.Body) (object.Essence, error) {
	return nil, errUnreachable
}

func (foreign) Store(context.Context, *object.Body, storage.Patch, object.Essence) error {
	return errUnreachable
}

func TestStatusDiffBase(t *testing.T) {
	for name, test := range map[string]struct {
		base  storage.StatusDiffBase
		field object.Path
	}{
		"in the default field": {storage.StatusDiffBase{}, object.Path{"status", "kopf", "last-handled-configuration"}},
		"in another field":     {storage.StatusDiffBase{Field: object.Path{"status", "diff-base"}}, object.Path{"status", "diff-base"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, base, body := t.Context(), test.base, annotated(nil)
			extra := []object.Path{{"status"}}
			essence := base.Build(body, extra)
			patch := storage.Patch{}
			noError(t, base.Store(ctx, body, patch, essence))
			noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
			body = applied(body, patch)
			if text, _ := body.Lookup(test.field); text != `{"spec":{"size":1}}` {
				t.Errorf("got %q", text)
			}
			if again := base.Build(body, extra); !reflect.DeepEqual(again, essence) {
				t.Errorf("storing the base counts as a change: %v", again)
			}
			if got, err := base.Fetch(ctx, body); err != nil || !reflect.DeepEqual(got, essence) {
				t.Errorf("got %v, %v", got, err)
			}
			if got, err := base.FetchCycle(ctx, body); err != nil || !reflect.DeepEqual(got, &storage.Cycle{Token: "1", First: essence}) {
				t.Errorf("got %v, %v", got, err)
			}
			patch = storage.Patch{}
			noError(t, base.Store(ctx, body, patch, essence))
			nothing(t, patch)
			noError(t, base.PurgeCycle(ctx, body, patch))
			if got, err := base.FetchCycle(ctx, applied(body, patch)); got != nil || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	for name, value := range map[string]any{"not a string": map[string]any{"spec": "sesame"}, "not JSON": "sesame"} {
		t.Run("is broken with "+name, func(t *testing.T) {
			body := object.NewBody(map[string]any{"status": map[string]any{"diff-base": value}})
			_, err := storage.StatusDiffBase{Field: object.Path{"status", "diff-base"}}.Fetch(t.Context(), body)
			assertBroken(t, err, "status.diff-base")
		})
	}
}

func TestMultiDiffBase(t *testing.T) {
	ctx := t.Context()
	fresh := storage.StatusDiffBase{Field: object.Path{"status", "diff-base"}, IgnoredFields: []object.Path{{"spec", "ignored"}}}
	old := storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "old"}}}
	base := storage.MultiDiffBase{storage.MultiDiffBase{fresh}, old}
	body := bodyOf(t, `{"kind": "K", "spec": {"size": 1, "ignored": 2, "old": 3}, "status": {"s": 4},
		"metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": "{\"from\":\"annotation\"}"}}}`)

	if got, err := base.Fetch(ctx, body); err != nil || got["from"] != "annotation" {
		t.Errorf("the second storage is not read: %v, %v", got, err)
	}
	essence := base.Build(body, []object.Path{{"status"}})
	if want := decoded(t, `{"spec": {"size": 1}, "status": {"s": 4}}`); !reflect.DeepEqual(essence, want) {
		t.Errorf("got %v, want %v", essence, want)
	}
	patch := storage.Patch{}
	noError(t, base.Store(ctx, body, patch, essence))
	noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
	body = applied(body, patch)
	for _, each := range []storage.DiffBase{fresh, old} {
		if got, err := each.Fetch(ctx, body); err != nil || !reflect.DeepEqual(got, essence) {
			t.Errorf("%T: got %v, %v", each, got, err)
		}
	}
	if got, err := fresh.FetchCycle(ctx, body); err != nil || !reflect.DeepEqual(got, &storage.Cycle{Token: "1", First: essence}) {
		t.Errorf("the first storage does not keep the cycle: %v, %v", got, err)
	}
	noError(t, base.PurgeCycle(ctx, body, patch))
	if got, err := base.FetchCycle(ctx, applied(body, patch)); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// A cycle that has started before the transition is continued and ended by both storages.
func TestMultiDiffBaseReadsCycleOfOldStorage(t *testing.T) {
	ctx, old := t.Context(), storage.AnnotationsDiffBase{}
	base := storage.MultiDiffBase{storage.StatusDiffBase{}, old}
	body, essence := annotated(nil), decoded(t, `{"spec": {"size": 7}}`)
	patch := storage.Patch{}
	noError(t, old.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
	body = applied(body, patch)
	if got, err := base.FetchCycle(ctx, body); err != nil || !reflect.DeepEqual(got, &storage.Cycle{Token: "1", First: essence}) {
		t.Errorf("got %v, %v", got, err)
	}
	patch = storage.Patch{}
	noError(t, base.PurgeCycle(ctx, body, patch))
	if got, err := old.FetchCycle(ctx, applied(body, patch)); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMultiDiffBaseWithForeignStorages(t *testing.T) {
	ctx := t.Context()
	body := bodyOf(t, `{"spec": {"size": 1, "foreign": 2}, "status": {"s": 4}}`)
	base := storage.MultiDiffBase{foreign{}}
	essence := base.Build(body, []object.Path{{"status", "s"}})
	if want := decoded(t, `{"spec": {"size": 1}, "status": {"s": 4}}`); !reflect.DeepEqual(essence, want) {
		t.Errorf("got %v, want %v", essence, want)
	}
	handled := annotated(map[string]string{baseKey: "{}"})
	if essence, err := append(base, storage.AnnotationsDiffBase{}).Fetch(ctx, handled); essence != nil || !errors.Is(err, errUnreachable) {
		t.Errorf("a failure counts as absence: %v, %v", essence, err)
	}
	patch := storage.Patch{}
	err := append(base, storage.AnnotationsDiffBase{}).Store(ctx, body, patch, essence)
	if !errors.Is(err, errUnreachable) {
		t.Errorf("got %v", err)
	}
	noError(t, base.StoreCycle(ctx, body, patch, &storage.Cycle{Token: "1", First: essence}))
	noError(t, base.PurgeCycle(ctx, body, patch))
	if got, err := base.FetchCycle(ctx, body); got != nil || err != nil || base.Hashes(body, patch, essence) != storage.NotHashed {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMultiProgressReturnsFailures(t *testing.T) {
	progress := storage.MultiProgress{unreachable{}, storage.SmartProgress{}}
	// The record in the first storage may be newer than the one in the second.
	body := annotated(map[string]string{"kopf.zalando.org/fn": "{}"})
	if record, err := progress.Fetch(t.Context(), body, "fn"); record != nil || !errors.Is(err, errUnreachable) {
		t.Errorf("got %+v, %v", record, err)
	}
	patch := storage.Patch{}
	if err := progress.Store(t.Context(), annotated(nil), patch, "fn", &storage.Record{}); !errors.Is(err, errUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestMultiDiffBaseReportsHashing(t *testing.T) {
	body := bodyOf(t, secretJSON)
	base := storage.MultiDiffBase{foreign{}, storage.StatusDiffBase{}}
	if got := base.Hashes(body, storage.Patch{}, storage.BuildEssence(body, nil)); got != storage.HashedSecret {
		t.Errorf("hashed because of %q", got)
	}
}
