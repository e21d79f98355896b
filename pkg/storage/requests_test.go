package storage_test

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestRequestsHaveAPrefixThatNoOperatorTakesForAChange(t *testing.T) {
	for name, test := range map[string]struct {
		storage storage.Progress
		want    string
	}{
		"by default":                 {storage.SmartProgress{}, "kopf.zalando.org"},
		"with a marked prefix":       {storage.AnnotationsProgress{Prefix: "my.example.com"}, "my.example.com"},
		"with a subdomain of Kopf's": {storage.AnnotationsProgress{Prefix: "my.kopf.zalando.org"}, "my.kopf.zalando.org"},
		"with a prefix without mark": {storage.SmartProgress{Prefix: "kopf.example.com"}, "kopf.zalando.org"},
		"in the status":              {storage.StatusProgress{}, "kopf.zalando.org"},
		"in several places":          {storage.MultiProgress{storage.StatusProgress{}, storage.AnnotationsProgress{Prefix: "my.example.com"}}, "my.example.com"},
		"in several other places":    {storage.MultiProgress{storage.StatusProgress{}}, "kopf.zalando.org"},
	} {
		if got := storage.RequestPrefix(test.storage); got != test.want {
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
