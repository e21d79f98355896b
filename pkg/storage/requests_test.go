package storage_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestRequestsHaveAPrefixThatNoOperatorTakesForAChange(t *testing.T) {
	for name, test := range map[string]struct {
		progress storage.Progress
		want     string
		base     storage.DiffBase
	}{
		"by default":                          {storage.SmartProgress{}, "kopf.zalando.org", storage.AnnotationsDiffBase{}},
		"with a marked prefix":                {storage.AnnotationsProgress{Prefix: "my.example.com"}, "my.example.com", storage.AnnotationsDiffBase{Prefix: "my.example.com"}},
		"with a prefix that is rarely marked": {storage.AnnotationsProgress{Prefix: "my.example.com"}, "kopf.zalando.org", storage.StatusDiffBase{}},
		"with two prefixes":                   {storage.SmartProgress{Prefix: "my.example.com"}, "kopf.zalando.org", storage.AnnotationsDiffBase{}},
		"with a subdomain of Kopf's":          {storage.AnnotationsProgress{Prefix: "my.kopf.zalando.org"}, "my.kopf.zalando.org", storage.StatusDiffBase{}},
		"with a prefix without mark":          {storage.SmartProgress{Prefix: "kopf.example.com"}, "kopf.zalando.org", storage.AnnotationsDiffBase{Prefix: "kopf.example.com"}},
		"in the status":                       {storage.StatusProgress{}, "kopf.zalando.org", storage.AnnotationsDiffBase{Prefix: "my.example.com"}},
		"entirely in the status":              {storage.StatusProgress{}, "kopf.zalando.org", storage.StatusDiffBase{}},
		"in several places": {
			storage.MultiProgress{storage.StatusProgress{}, storage.AnnotationsProgress{Prefix: "my.example.com"}},
			"my.example.com",
			storage.MultiDiffBase{storage.StatusDiffBase{}, storage.AnnotationsDiffBase{Prefix: "my.example.com"}},
		},
		"in several other places": {storage.MultiProgress{storage.StatusProgress{}}, "kopf.zalando.org", storage.MultiDiffBase{}},
	} {
		if got := storage.RequestPrefix(test.base, test.progress); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestAnnotationsOfReplicaSetsAreCopies(t *testing.T) {
	owned := func(kind, by string) *object.Body {
		return object.NewBody(map[string]any{"kind": kind, "metadata": map[string]any{
			"ownerReferences": []any{map[string]any{"kind": by, "controller": true}},
		}})
	}
	for want, bodies := range map[bool][]*object.Body{
		true:  {owned("ReplicaSet", "Deployment")},
		false: {owned("ReplicaSet", "Rollout"), owned("Pod", "ReplicaSet"), object.NewBody(nil)},
	} {
		for _, body := range bodies {
			if got := storage.HasCopiedAnnotations(body); got != want {
				t.Errorf("%v: got %t", body.Raw(), got)
			}
		}
	}
}
