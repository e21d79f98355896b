package recording

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kopf-go/kopf/pkg/model/object"
)

func TestHashes(t *testing.T) {
	h := NewHasher([]any{"gold", int64(3)}, []object.Path{{"spec", "open"}})
	raw := map[string]any{
		"kind": "Claim", "apiVersion": "example.com/v1",
		"metadata": map[string]any{"name": "one", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"tier": "gold", "owner": "one"}},
		"spec":     map[string]any{"open": map[string]any{"a": "text"}, "size": int64(7), "three": int64(3), "zero": int64(0), "share": 0.5, "limit": "10Gi", "on": true, "none": nil, "empty": "", "list": []any{"one", int64(7)}},
	}
	got := h.Object(raw)
	if raw["kind"] != "Claim" || raw["metadata"].(map[string]any)["name"] != "one" {
		t.Errorf("the object is modified: %v", raw)
	}
	metadata, spec := got["metadata"].(map[string]any), got["spec"].(map[string]any)
	labels, list := metadata["labels"].(map[string]any), spec["list"].([]any)
	readable := map[string]any{"open": map[string]any{"a": "text"}, "three": int64(3), "zero": int64(0), "on": true, "none": nil, "empty": ""}
	for key, want := range readable {
		if !reflect.DeepEqual(spec[key], want) {
			t.Errorf("%s is %v", key, spec[key])
		}
	}
	if got["kind"] != "Claim" || got["apiVersion"] != "example.com/v1" || labels["tier"] != "gold" {
		t.Errorf("got %v", got)
	}
	if metadata["name"] == "one" || labels["owner"] != metadata["name"] || list[0] != metadata["name"] || list[1] != spec["size"] || spec["size"] == int64(7) {
		t.Errorf("equality does not survive: %v", got)
	}
	if _, err := time.Parse(time.RFC3339, metadata["creationTimestamp"].(string)); err != nil || metadata["creationTimestamp"] == "2026-01-02T03:04:05Z" {
		t.Errorf("got the time %v", metadata["creationTimestamp"])
	}
	if _, err := resource.ParseQuantity(spec["limit"].(string)); err != nil || spec["limit"] == "10Gi" {
		t.Errorf("got the quantity %v", spec["limit"])
	}
	if _, isNumber := spec["share"].(float64); !isNumber || spec["share"] == 0.5 {
		t.Errorf("got the number %v", spec["share"])
	}
	if other := NewHasher(nil, nil).Object(raw); reflect.DeepEqual(other["metadata"].(map[string]any)["name"], metadata["name"]) {
		t.Error("two recordings have the same key")
	}
}
