package operator

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/events"
	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/reconcile"
)

func TestContextOfAHandler(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	pod := object.NewBody(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u"},
	})
	ctx := (&callContext{}).add(t.Context(), reconcile.CallContext{Body: func() *object.Body { return pod }, Logger: logger})

	child := &corev1.ConfigMap{}
	if err := hierarchy.Adopt(ctx, child); err != nil || child.Namespace != "ns" || len(child.OwnerReferences) != 1 || child.OwnerReferences[0].Name != "one" {
		t.Errorf("got %+v, %v", child.ObjectMeta, err)
	}
	if owner, ok := hierarchy.OwnerFrom(ctx); !ok || owner.Kind != "Pod" {
		t.Errorf("got %+v", owner)
	}
	// Without a recorder, events are dropped.
	if err := events.Info(ctx, nil, "Resized", "The volume is larger now."); err != nil || len(lines) != 0 {
		t.Errorf("got %v, %q", err, lines)
	}
	if ClientFrom(t.Context()) != nil || SettingsFrom(t.Context()) != nil {
		t.Error("a context that is not of a handler has a client or settings")
	}
}

// Decoding the object would cost more than the rest of most calls.
func TestContextDoesNotDecodeTheObject(t *testing.T) {
	(&callContext{}).add(t.Context(), reconcile.CallContext{Logger: logr.Discard(), Body: func() *object.Body {
		t.Error("the object is decoded, though nothing asks for an owner")
		return object.NewBody(nil)
	}})
}
