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

func TestTheContextOfAHandler(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	pod := object.NewBody(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "one", "namespace": "ns", "uid": "u"},
	})
	ctx := (&surroundings{}).context(t.Context(), reconcile.About{Body: func() *object.Body { return pod }, Logger: logger})

	child := &corev1.ConfigMap{}
	if err := hierarchy.Adopt(ctx, child); err != nil || child.Namespace != "ns" || len(child.OwnerReferences) != 1 || child.OwnerReferences[0].Name != "one" {
		t.Errorf("got %+v, %v", child.ObjectMeta, err)
	}
	if owner, ok := hierarchy.OwnerFrom(ctx); !ok || owner.Kind != "Pod" {
		t.Errorf("got %+v", owner)
	}
	// There is no recorder: nothing happens.
	if err := events.Info(ctx, nil, "Resized", "The volume is larger now."); err != nil || len(lines) != 0 {
		t.Errorf("got %v, %q", err, lines)
	}
	if ClientFrom(t.Context()) != nil || SettingsFrom(t.Context()) != nil {
		t.Error("there is something outside of handlers")
	}
}

// Decoding the object would cost more than the rest of most calls.
func TestTheObjectIsNotLookedAtForAContext(t *testing.T) {
	(&surroundings{}).context(t.Context(), reconcile.About{Logger: logr.Discard(), Body: func() *object.Body {
		t.Error("the object is looked at, though nobody asks for an owner")
		return object.NewBody(nil)
	}})
}
