package handling

import (
	"context"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// Handlers of two versions of one resource would share the records and the finalizer. One version is
// served, the log names the handlers of the other, and no object is released without its deletion handlers.
func TestHandlersOfOtherVersionsAreNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	group := "versions.example.com"
	definition := testenv.Definition(group, "versioneds", "Versioned", "v1", "v1beta1")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	b.Expect(err).NotTo(gomega.HaveOccurred())
	crd := &unstructured.Unstructured{Object: content}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	b.Expect(cluster.Client().Create(t.Context(), crd)).To(gomega.Succeed())

	of := func(version string) kopf.Selector { return kopf.Resource(group, version, "versioneds") }
	b.OnCreate(of("v1"), b.noted("create", succeed), kopf.ID("create"))
	b.OnDelete(of("v1"), b.noted("delete", succeed), kopf.ID("delete"))
	b.OnCreate(of("v1beta1"), b.noted("beta-create", succeed), kopf.ID("beta-create"))
	b.OnDelete(of("v1beta1"), b.noted("beta-delete", succeed), kopf.ID("beta-delete"))
	b.OnEvent(of("v1beta1"), func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("beta-event"))
	operator := b.start()
	b.Expect(b.logged("versioneds.v1.versions.example.com", "is served, so the handlers of the same objects in other versions are not called: versioneds.v1beta1")()).To(gomega.HaveLen(1))

	object := testenv.NewObject("Versioned", b.namespace, "one", nil)
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Versioned"})
	b.Eventually(func() error { return cluster.Client().Create(t.Context(), object.DeepCopy()) }).Should(gomega.Succeed())
	b.Eventually(cluster.Current(object)).Should(testenv.HaveAnnotation(handled, gomega.Not(gomega.BeEmpty())))
	b.remove(object)
	b.Eventually(b.logged("The deletion is held because a deletion handler of another version of the resource is not called")).Should(gomega.HaveLen(1))
	b.expectRest()
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0"}))
	b.Expect(b.current(object).GetFinalizers()).To(gomega.Equal([]string{finalizer}))

	operator.Stop()
	b.Registry = kopf.NewRegistry()
	b.OnDelete(of("v1"), b.noted("delete", succeed), kopf.ID("delete"))
	b.OnDelete(of("v1"), b.noted("beta-delete", succeed), kopf.ID("beta-delete"))
	b.start()
	b.expectGone(object)
	b.Expect(b.calls.All()).To(gomega.Equal([]string{"create 0", "delete 0", "beta-delete 0"}))
}
