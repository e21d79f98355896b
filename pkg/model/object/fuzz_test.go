package object_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// FuzzBody checks that every accepted snapshot can be read, and parsed again from its
// text.
func FuzzBody(f *testing.F) {
	f.Add(full)
	f.Add(`{"metadata":{"name":"a","labels":{"a":null},"finalizers":[1]},"spec":[],"status":1e999}`)
	f.Add(`{"metadata":{"annotations":{"a":"\ud800"}},"a":{"a":{"a":[[[]]]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		snapshot, err := object.ParseSnapshot([]byte(text))
		if err != nil {
			return
		}
		body := snapshot.Body()
		read(snapshot, body)
		again, err := body.JSON()
		if err != nil {
			t.Fatalf("%q has no text: %v", text, err)
		}
		second, err := object.ParseSnapshot(again)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, again, err)
		}
		if second.Size() != snapshot.Size() || !object.Equal(second.Body().Raw(), body.Raw()) {
			t.Errorf("%q became %q", text, again)
		}
	})
}

func read(s *object.Snapshot, b *object.Body) {
	meta := s.GetObjectMeta()
	_, _, _, _ = meta.GetLabels(), meta.GetAnnotations(), s.Deleting(), s.GetObjectKind().GroupVersionKind()
	_, _, _, _ = b.Labels(), b.Annotations(), b.Finalizers(), b.CreationTimestamp()
	_, _, _ = b.Spec().Map(), b.Status().Keys(), b.Deleting()
	for _, key := range b.View().Keys() {
		value, _ := b.View().Value(key)
		_, _ = object.Normalize(value)
		_, _ = b.View().Float64(key)
		_ = object.NewValue(value).String()
	}
}
