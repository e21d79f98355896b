package explain

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func TestChildrenOfUndeclaredHandlersAreExplained(t *testing.T) {
	s := newScene(t)
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name()}}}, nil
	}, kopf.ID("shop"))
	operator := s.start()
	s.isHandled(s.create("one"))
	s.isHandled(s.create("other"))
	operator.Stop()

	s.Registry = kopf.NewRegistry()
	s.OnUpdate(examples, func(context.Context, *kopf.Change) error { return nil }, kopf.ID("update"))
	s.says("one",
		"The object has children of a handler of kopf.Ensure, but this program declares none for it: they are left alone, unless another operator takes care of them.",
		"Children\n  - ConfigMap NAMESPACE/one (shop) is left alone, because its handler is not declared: if it was renamed, declare it with kopf.ID(\"shop\"); otherwise, delete the child\n\n")
}
