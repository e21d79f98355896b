package storage_test

import (
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestBuildEssence(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		extra []object.Path
		want  string
	}{
		"keeps what people write, of metadata only labels and annotations": {
			body: `{"apiVersion": "v1", "kind": "K", "spec": {"a": null}, "data": {"k": "v"}, "status": {"s": 1},
				"metadata": {"name": "n", "labels": {"l": "1"}, "annotations": {"note": "2"}}}`,
			want: `{"spec": {"a": null}, "data": {"k": "v"}, "metadata": {"labels": {"l": "1"}, "annotations": {"note": "2"}}}`,
		},
		"leaves out the annotations of kubectl and of operators": {
			body: `{"metadata": {"annotations": {
				"kubectl.kubernetes.io/last-applied-configuration": "{}", "kubectl.kubernetes.io/restartedAt": "now",
				"kopf.zalando.org/any": "1", "sub.kopf.zalando.org/any": "2", "notkopf.zalando.org/any": "3",
				"my-op.example.com/kopf-managed": "no matter what", "my-op.example.com/any": "4", "example.com/any": "5"}}}`,
			want: `{"metadata": {"annotations": {
				"kubectl.kubernetes.io/restartedAt": "now", "notkopf.zalando.org/any": "3", "example.com/any": "5"}}}`,
		},
		"leaves out metadata when nothing in it is left": {
			body: `{"spec": {}, "metadata": {"labels": {}, "annotations": {"kopf.zalando.org/any": "1"}}}`,
			want: `{"spec": {}}`,
		},
		"restores extra fields, including nulls": {
			body:  `{"metadata": {"name": "n", "uid": "u"}, "status": {"a": {"b": null, "c": 1}, "d": 2}}`,
			extra: []object.Path{{"metadata", "name"}, {"status", "a", "b"}, {"status", "none"}, {"status", "d", "deeper"}},
			want:  `{"metadata": {"name": "n"}, "status": {"a": {"b": null}}}`,
		},
		"accepts extra fields that are inside each other, inside the spec, or the whole object": {
			body:  `{"kind": "K", "spec": {"a": 1}, "status": {"a": {"b": 1}}}`,
			extra: []object.Path{{"status"}, {"status", "a", "b"}, {"spec", "a"}, {"kind"}, {}},
			want:  `{"kind": "K", "spec": {"a": 1}, "status": {"a": {"b": 1}}}`,
		},
		"restores requested annotations of any owner": {
			body:  `{"metadata": {"labels": {}, "annotations": {"kopf.zalando.org/any": "1"}}}`,
			extra: []object.Path{{"metadata"}},
			want:  `{"metadata": {"annotations": {"kopf.zalando.org/any": "1"}}}`,
		},
		"drops an extra status that is empty": {
			body:  `{"status": {}}`,
			extra: []object.Path{{"status"}},
			want:  `{}`,
		},
		"is empty but not nil for an empty object": {body: `{}`, want: `{}`},
		"survives an object that no API server would accept": {
			body:  `{"metadata": "text", "status": [], "spec": null}`,
			extra: []object.Path{{"metadata", "name"}, {"status", "a"}, {"spec", "b"}},
			want:  `{"spec": null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := bodyOf(t, test.body)
			before := runtime.DeepCopyJSON(body.Raw())
			got := storage.BuildEssence(body, test.extra)
			if want := decoded(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %v\nwant %v", got, want)
			}
			if !reflect.DeepEqual(body.Raw(), before) {
				t.Errorf("the body was changed: %v", body.Raw())
			}
		})
	}
}

func TestWithout(t *testing.T) {
	for name, test := range map[string]struct {
		essence string
		fields  []object.Path
		want    string
	}{
		"removes a field and what becomes empty":                 {`{"a": {"b": {"c": 1}}, "d": 1}`, []object.Path{{"a", "b", "c"}}, `{"d": 1}`},
		"keeps the siblings of the field":                        {`{"a": {"b": {"c": 1}, "d": 1}}`, []object.Path{{"a", "b"}}, `{"a": {"d": 1}}`},
		"removes an empty mapping in which the field could be":   {`{"a": {}, "d": 1}`, []object.Path{{"a", "b"}}, `{"d": 1}`},
		"leaves an essence without the field alone":              {`{"a": {"x": 1}}`, []object.Path{{"a", "b"}, {"c"}, {}}, `{"a": {"x": 1}}`},
		"does not look into values other than mappings":          {`{"a": "text", "b": null}`, []object.Path{{"a", "b"}, {"b", "c"}}, `{"a": "text", "b": null}`},
		"removes several fields, one of them inside another one": {`{"a": {"b": {"c": 1}, "d": 1}}`, []object.Path{{"a", "b", "c"}, {"a", "b"}, {"a"}}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			essence := decoded(t, test.essence)
			got := storage.Without(essence, test.fields...)
			if want := decoded(t, test.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if before := decoded(t, test.essence); !reflect.DeepEqual(essence, before) {
				t.Errorf("the essence was changed: %v", essence)
			}
		})
	}
}

func BenchmarkBuildEssence(b *testing.B) {
	body := bodyOf(b, `{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "spec": {"size": 1, "items": [1, 2, 3]},
		"status": {"create_fn": {"x": 1}}, "metadata": {"name": "n", "namespace": "ns", "uid": "u", "labels": {"a": "b"},
		"annotations": {"note": "text", "kubectl.kubernetes.io/last-applied-configuration": "{}",
		"kopf.zalando.org/last-handled-configuration": "{}", "kopf.zalando.org/create_fn": "{}"}}}`)
	extra := []object.Path{{"status", "create_fn"}}
	b.ReportAllocs()
	for b.Loop() {
		storage.SmartProgress{}.Clear(storage.AnnotationsDiffBase{}.Build(body, extra))
	}
}

func TestStoragesShareABody(t *testing.T) {
	body := annotated(map[string]string{"note": "text", baseKey: "{}", cycleKey: "{}", "kopf.zalando.org/fn": "{}"})
	base, progress := storage.AnnotationsDiffBase{IgnoredFields: []object.Path{{"spec", "size"}}}, storage.SmartProgress{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			patch := storage.Patch{}
			essence := progress.Clear(base.Build(body, []object.Path{{"metadata"}, {"status"}}))
			if base.Store(t.Context(), body, patch, essence) != nil || base.PurgeCycle(t.Context(), body, patch) != nil ||
				progress.Purge(t.Context(), body, patch, "fn") != nil {
				t.Error("it failed")
			}
		})
	}
	all.Wait()
}
